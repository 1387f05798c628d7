"""Keys and certificates, and which of them are accepted."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from fairgate.cli.app import run as command
from fairgate.errors import BadInput
from fairgate.net import keys
from fairgate.net.address import TcpAddress
from fairgate.net.tls import Tls, mutual
from tests.live.peers import Peer, Stranger, close_all, hello, lines, run, until

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "ours"
    keys.init(folder)
    keys.add(folder, HOST, ["localhost"])
    keys.add(folder, "elsewhere.example")
    keys.add(folder, "old", [HOST], days=-1)
    return folder


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys") / "theirs"
    keys.init(folder)
    keys.add(folder, HOST)
    return folder


def unchecked(folder: Path, host: str) -> Tls:
    """Skips the check of dates, like a host whose clock is wrong."""
    return mutual(folder / "ca.crt", folder / f"{host}.crt", folder / f"{host}.key", "somebody")


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("host", [HOST, "localhost"])
def test_two_hosts_of_a_cluster(fast: bool, host: str, ours: Path) -> None:
    if fast:
        pytest.importorskip("uvloop")

    async def main() -> None:
        tls = keys.load(ours, HOST)
        one, two = Peer(1, tls=tls), Peer(2, tls=tls)
        address = one.transport.listen(TcpAddress(HOST, 0))
        assert isinstance(address, TcpAddress)
        two.transport.dial(TcpAddress(host, address.port))
        await one.until("up", 2)
        sent = [("x" * 100_000, number) for number in range(20)]
        for frame in sent:
            one.transport.send(2, frame)
        await two.until("frame", times=len(sent))
        assert two.frames() == sent
        await close_all(one, two)

    run(main(), fast)


def dialled_by(
    server: Tls | None, client: Tls | None, caplog: pytest.LogCaptureFixture, fast: bool
) -> tuple[str, list[str]]:
    """Why the client was refused, and what the server logged."""
    why = ""

    async def main() -> None:
        nonlocal why
        one, two = Peer(1, tls=server), Peer(2, tls=client)
        dial = two.transport.dial(one.transport.listen(TcpAddress(HOST, 0)))
        await until(lambda: bool(dial.why))
        await until(lambda: bool(server_lines(caplog)))
        why = dial.why
        assert one.told == two.told == []
        await close_all(one, two)

    run(main(), fast)
    return why, server_lines(caplog)


def server_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in lines(caplog.records) if line.startswith(("refused", "closed"))]


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_a_certificate_of_another_cluster_is_refused(
    fast: bool, ours: Path, theirs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    why, refused = dialled_by(keys.load(ours, HOST), keys.load(theirs, HOST), caplog, fast)
    assert why == "its certificate is not signed by this cluster's authority"
    assert refused


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_a_client_without_a_certificate(fast: bool, ours: Path, caplog: pytest.LogCaptureFixture) -> None:
    bare = ssl.create_default_context(cafile=str(ours / "ca.crt"))
    why, refused = dialled_by(keys.load(ours, HOST), Tls(bare, bare, "nobody"), caplog, fast)
    assert why == "it closed the connection, perhaps because it does not accept our certificate"
    assert "it has no certificate" in refused[0]


def test_a_client_of_another_cluster_that_trusts_everyone_is_refused(
    ours: Path, theirs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The client accepts the server, so the server has to refuse the client."""
    lax = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    lax.check_hostname = False
    lax.verify_mode = ssl.CERT_NONE
    lax.load_cert_chain(theirs / f"{HOST}.crt", theirs / f"{HOST}.key")
    why, refused = dialled_by(keys.load(ours, HOST), Tls(lax, lax, "nobody"), caplog, False)
    assert why == "it closed the connection, perhaps because it does not accept our certificate"
    assert "its certificate is not signed by this cluster's authority" in refused[0]


def test_an_expired_certificate(ours: Path, caplog: pytest.LogCaptureFixture) -> None:
    why, refused = dialled_by(keys.load(ours, HOST), unchecked(ours, "old"), caplog, False)
    assert why == "it closed the connection, perhaps because it does not accept our certificate"
    assert "its certificate has expired" in refused[0]


def test_a_server_with_an_expired_certificate(ours: Path, caplog: pytest.LogCaptureFixture) -> None:
    why, _ = dialled_by(unchecked(ours, "old"), keys.load(ours, HOST), caplog, False)
    assert why == "its certificate has expired"


def test_a_certificate_of_another_host(ours: Path, caplog: pytest.LogCaptureFixture) -> None:
    why, _ = dialled_by(keys.load(ours, "elsewhere.example"), keys.load(ours, HOST), caplog, False)
    assert why.startswith("its certificate is for another host")


def test_a_server_that_speaks_no_tls(ours: Path, caplog: pytest.LogCaptureFixture) -> None:
    why, _ = dialled_by(None, keys.load(ours, HOST), caplog, False)
    assert why == "it closed the connection, perhaps because it does not use TLS"


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_a_client_without_tls_receives_no_protocol_bytes(
    fast: bool, ours: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        one = Peer(1, tls=keys.load(ours, HOST))
        stranger = await Stranger.at(one.transport.listen(TcpAddress(HOST, 0)))
        stranger.say(hello(7))
        try:
            got = await stranger.reader.read()
        except ConnectionResetError:
            got = b""
        assert got[:1] in (b"", b"\x15")  # nothing, or a TLS alert
        await stranger.close()
        assert one.told == []
        await one.transport.close()

    run(main(), fast)
    assert len(lines(caplog.records)) == 1


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
def test_an_incomplete_tls_handshake_times_out(fast: bool, ours: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        one = Peer(1, tls=keys.load(ours, HOST), greeting_seconds=0.1)
        stranger = await Stranger.at(one.transport.listen(TcpAddress(HOST, 0)))
        stranger.say(b"\x16\x03\x01")
        assert await stranger.answers() == []
        await until(lambda: not one.transport.listening.strangers)
        await stranger.close()
        await one.transport.close()

    run(main(), fast)
    assert ["it did not answer in time" in line for line in lines(caplog.records)] == [True]


# The files, and the command that creates them.


def test_files_are_private_and_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "keys"
    assert command(["keys", "init", str(folder)]) == 0
    assert command(["keys", "add", "web1", "--also", "10.0.0.5", "--dir", str(folder)]) == 0
    assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["ca.crt", "ca.key", "web1.crt", "web1.key"]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert command(["keys", "init", str(folder)]) == 2
    assert command(["keys", "add", "web1", "--dir", str(folder)]) == 2
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    _, err = capsys.readouterr()
    assert len(err.splitlines()) == 2
    assert "already has an authority" in err
    assert "already exists" in err
    assert isinstance(keys.load(folder), Tls)  # the only host


def test_keys_without_a_command_lists_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["keys"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Create the TLS certificates for a cluster of several hosts" in out
    assert "Create the key and the certificate of one host" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["add", "web1"], "does not exist"),
        (["add", "not a host"], "neither a host name nor an IP address"),
        (["add", "../up"], "neither a host name nor an IP address"),
        (["add", "ca"], "reserved for the authority"),
    ],
)
def test_bad_input_is_reported_in_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["keys", *arguments, "--dir", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err


def test_unusable_keys_are_reported_in_one_line(ours: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"old.crt expired on .* run `fairgate keys add old` again"):
        keys.load(ours, "old")
    with pytest.raises(BadInput, match="specify which is this host's"):
        keys.load(ours)
    with pytest.raises(BadInput, match="does not exist"):
        keys.load(ours, "nobody")
    for name in ("ca.crt", f"{HOST}.crt"):
        (tmp_path / name).write_bytes((ours / name).read_bytes())
    with pytest.raises(BadInput, match="cannot read"):
        keys.load(tmp_path, HOST)
    (tmp_path / f"{HOST}.key").write_bytes((ours / "elsewhere.example.key").read_bytes())
    (tmp_path / f"{HOST}.key").chmod(0o644)
    with pytest.raises(BadInput, match="can be read by other users"):
        keys.load(tmp_path, HOST)
    (tmp_path / f"{HOST}.key").chmod(0o600)
    with pytest.raises(BadInput, match="cannot use"):
        keys.load(tmp_path, HOST)
    (tmp_path / "ca.crt").write_text("no certificate\n")
    with pytest.raises(BadInput, match="is not a certificate"):
        keys.load(tmp_path, HOST)
