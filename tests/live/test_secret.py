"""Every user of a host can connect to its loopback ports. Only those who know the cluster's secret get in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fairgate import sync
from fairgate.errors import BadInput
from fairgate.net import secret
from fairgate.net.address import Address, TcpAddress, parse_address
from fairgate.net.codec import Frame, encode
from fairgate.net.secret import ACCEPTS, CHALLENGE, DIALS, NUMBER_BYTES, PROOF, WRONG, Proving, Secret, Unproved
from tests.live.commands import Say
from tests.live.peers import CLUSTER, SECRET, Peer, Stranger, close_all, hello, lines, run, until

LOOPBACK = TcpAddress("127.0.0.1", 0)
HERE, THERE = ("127.0.0.1", 1000), ("127.0.0.1", 2000)
OTHER = Secret(b"another secret of tests")


@pytest.fixture(params=["asyncio", "uvloop"])
def fast(request: pytest.FixtureRequest) -> bool:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return bool(request.param == "uvloop")


def test_peers_with_the_same_secret_meet(fast: bool) -> None:
    async def main() -> None:
        one, two = Peer(1), Peer(2)
        two.transport.dial(one.transport.listen(LOOPBACK))
        await one.until("up", 2)
        await two.until("up", 1)
        assert (one.principals, two.principals) == ([(2, "secret")], [(1, "secret")])
        await close_all(one, two)

    run(main(), fast)


@pytest.mark.parametrize(
    ("theirs", "cluster", "why"),
    [(OTHER, CLUSTER, WRONG), (SECRET, "other", WRONG)],
    ids=["another secret", "another cluster"],
)
def test_a_dialler_that_knows_another_secret_is_refused(theirs: Secret, cluster: str, why: str, fast: bool) -> None:
    async def main() -> None:
        one, two = Peer(1), Peer(2, cluster, secret=theirs)
        dial = two.transport.dial(one.transport.listen(LOOPBACK))
        await until(lambda: bool(dial.why))
        assert why in dial.why
        assert one.told == two.told == []
        await close_all(one, two)

    run(main(), fast)


async def refusal(one: Peer, *said: Frame | bytes) -> str:
    """What a stranger is told that says this to a peer that listens on a loopback address."""
    stranger = await Stranger.at(one.transport.listen(LOOPBACK))
    for each in said:
        stranger.say(each if isinstance(each, bytes) else encode(each))
    answers = await stranger.answers()
    await stranger.close()
    assert one.told == []
    return str(answers[-1][-1]) if answers else ""


NUMBER = bytes(NUMBER_BYTES)


@pytest.mark.parametrize(
    "said",
    [
        (hello(7),),
        ((PROOF, NUMBER),),
        ((CHALLENGE, NUMBER), hello(7)),
        ((CHALLENGE, NUMBER), (CHALLENGE, NUMBER)),
        ((CHALLENGE, NUMBER), (PROOF, NUMBER)),
        ((CHALLENGE, NUMBER), (PROOF, "text")),
        ((CHALLENGE, NUMBER, NUMBER),),
    ],
    ids=["no proof", "a proof of nothing", "hello", "asking twice", "a wrong proof", "a text", "as if it accepted"],
)
def test_a_stranger_that_does_not_know_the_secret_gets_nowhere(said: tuple[Any, ...]) -> None:
    async def main() -> None:
        one = Peer(1)
        told = await refusal(one, *said)
        assert told in (secret.NOT_PROVED, WRONG)
        await one.transport.close()

    run(main())


def test_a_short_number_is_not_a_challenge(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        one = Peer(1)
        assert await refusal(one, (CHALLENGE, b"1")) == ""
        await one.transport.close()

    run(main())
    assert "expected a number of 32 bytes" in lines(caplog.records)[0]


def test_a_peer_without_a_secret_says_so() -> None:
    async def main() -> None:
        one, two = Peer(1, secret=None, insecure=True), Peer(2)
        listener = TcpAddress("0.0.0.0", 0)
        address = one.transport.listen(listener)
        assert isinstance(address, TcpAddress)
        dial = two.transport.dial(TcpAddress("127.0.0.1", address.port))
        await until(lambda: bool(dial.why))
        assert dial.why == "it refused: this peer was given no secret"
        await close_all(one, two)

    run(main())


def exchanged(dials: Proving, accepts: Proving) -> None:
    """The whole exchange. Unproved if one side refuses the other."""
    challenge = accepts.answer(dials.begin())
    assert accepts.answer(dials.answer(challenge)) == ()
    assert dials.done
    assert accepts.done


def test_a_proof_is_bound_to_secret_cluster_side_and_connection() -> None:
    exchanged(Proving(SECRET, "c", DIALS, (HERE, THERE)), Proving(SECRET, "c", ACCEPTS, (HERE, THERE)))
    mapped = ("::ffff:127.0.0.1", 2000, 0, 0)
    exchanged(Proving(SECRET, "c", DIALS, (HERE, THERE)), Proving(SECRET, "c", ACCEPTS, (HERE, mapped)))
    away = ("10.0.0.5", 1), ("10.0.0.6", 2)  # hosts may see each other's addresses differently
    exchanged(Proving(SECRET, "c", DIALS, away), Proving(SECRET, "c", ACCEPTS, away[::-1]))
    for other in (
        Proving(OTHER, "c", ACCEPTS, (HERE, THERE)),
        Proving(SECRET, "d", ACCEPTS, (HERE, THERE)),
        Proving(SECRET, "c", ACCEPTS, (HERE, ("127.0.0.1", 2001))),  # another process relays the exchange
        Proving(SECRET, "c", ACCEPTS, (("127.0.0.1", 1001), THERE)),
    ):
        with pytest.raises(Unproved):
            exchanged(Proving(SECRET, "c", DIALS, (HERE, THERE)), other)


def test_a_proof_cannot_be_replayed_or_reflected() -> None:
    dials, accepts = (Proving(SECRET, "c", side, (HERE, THERE)) for side in (DIALS, ACCEPTS))
    old = dials.answer(accepts.answer(dials.begin()))
    again = Proving(SECRET, "c", ACCEPTS, (HERE, THERE))
    again.answer(dials.begin())
    with pytest.raises(Unproved):
        again.answer(old)
    fresh = Proving(SECRET, "c", ACCEPTS, (HERE, THERE))
    _, _, proof = fresh.answer((CHALLENGE, NUMBER))
    with pytest.raises(Unproved):
        fresh.answer((PROOF, proof))


def test_a_relay_on_the_port_of_a_dead_peer_is_refused(fast: bool) -> None:
    """Another user listens where a peer used to, and passes every byte on to a living peer and back."""

    async def main() -> None:
        one, two = Peer(1), Peer(2)
        real = one.transport.listen(LOOPBACK)
        relay = await asyncio.start_server(lambda reader, writer: between(reader, writer, real), "127.0.0.1", 0)
        port = relay.sockets[0].getsockname()[1]
        dial = two.transport.dial(TcpAddress("127.0.0.1", port))
        await until(lambda: bool(dial.why))
        assert dial.why == WRONG
        assert one.told == two.told == []
        relay.close()
        await close_all(one, two)

    run(main(), fast)


async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, real: Address) -> None:
    there = await Stranger.at(real)

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(1000):
            target.write(data)
        target.close()

    await asyncio.gather(copy(reader, there.writer), copy(there.reader, writer), return_exceptions=True)


# The rule and the file.


@pytest.mark.parametrize("insecure", [False, True])
def test_loopback_needs_a_secret_and_insecure_does_not_waive_that(
    insecure: bool, monkeypatch: pytest.MonkeyPatch, say: Say, tmp_path: Path
) -> None:
    monkeypatch.delenv(secret.VARIABLE)
    for listen in ("127.0.0.1:0", "[::1]:0", "localhost:0"):
        with pytest.raises(BadInput, match="every user of this host can connect to"):
            sync.join(listen=listen, insecure=insecure)
    with pytest.raises(BadInput, match="every user of this host can connect to"):
        sync.join("127.0.0.1:7400", insecure=insecure)
    flags = ["--insecure"] * insecure
    for words in (["peer", "--create", "--listen", "127.0.0.1:0"], ["who", "--join", "127.0.0.1:7400"]):
        code, _, err = say(*words, *flags)
        assert (code, err.count("\n")) == (2, 1)
        assert "use --secret FILE" in err
    code, _, err = say("peer", "--create", "--listen", f"unix:{tmp_path}/x", "--secret", "f", *flags)
    assert (code, "--secret is for TCP" in err) == (2, True)


def test_the_file_of_a_secret(tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    assert say("keys", "secret", str(file))[0] == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert secret.load(file).key != secret.load(made(tmp_path / "other")).key
    code, _, err = say("keys", "secret", str(file))
    assert (code, err) == (2, f"fairgate: cannot create {file}: File exists: remove it first, or use another name\n")
    monkeypatch.setenv(secret.VARIABLE, str(file))
    found = secret.from_environment()
    assert found is not None
    assert found.key == secret.load(file).key
    assert found.key.decode() not in repr(found)
    for mode in (0o640, 0o604, 0o660):
        file.chmod(mode)
        with pytest.raises(BadInput, match=f"can be read by other users \\(mode {mode:04o}\\): set mode 0600"):
            secret.load(file)
    file.chmod(0o600)
    tmp_path.chmod(0o777)
    with pytest.raises(BadInput, match="can be changed by other users"):
        secret.load(file)
    tmp_path.chmod(0o700)
    for content, words in ((b"short", "has 5 bytes"), (b"x" * 5000, "a secret has 16 to 4096")):
        file.write_bytes(content)
        with pytest.raises(BadInput, match=words):
            secret.load(file)
    with pytest.raises(BadInput, match="No such file"):
        secret.load(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="is not a file"):
        secret.load(folder(tmp_path / "folder"))


def made(path: Path) -> Path:
    secret.create(path)
    return path


def folder(path: Path) -> Path:
    path.mkdir(0o700)
    return path


def test_a_cluster_with_a_secret_works_whole(secret: Path, say: Say) -> None:
    with sync.join(listen="127.0.0.1:0") as keeper, sync.join(keeper.engine.identity.address) as other:
        gate = other.lock("gpu")
        with gate as permit:
            assert permit.fence is not None
            address = keeper.engine.identity.address
            assert parse_address(address).loopback  # type: ignore[union-attr]
            assert say("who", "gpu", "--join", address, "--secret", str(secret))[0] == 0
