"""Clusters over TLS with keys made by `fairgate keys`: only certificates of this authority are accepted."""

from __future__ import annotations

import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairgate.net import keys
from tests.live.commands import SOON, Say, end, end_by, inside, line, run, standing, start
from tests.live.test_hosts import free_port

HERE = "127.0.0.1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default directory of `fairgate keys`."""
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path / "config" / "fairgate" / "keys"


Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path, say: Say) -> Make:
    def made(name: str, *hosts: str) -> Path:
        folder = tmp_path / name
        assert say("keys", "init", str(folder))[0] == 0
        for host in hosts:
            assert say("keys", "add", host, "--also", HERE, "--dir", str(folder))[0] == 0
        return folder

    return made


@pytest.fixture
def ours(make: Make) -> Path:
    return make("ours", "web1", "web2")


@pytest.fixture
def seed(ours: Path) -> Iterator[str]:
    keeper, address = standing("--create", "--listen", f"{HERE}:0", "--keys", str(ours / "web1.crt"))
    yield address
    assert end_by(signal.SIGTERM, keeper)[:2] == (0, "SIGTERM: leaving\n")


def test_commands_with_keys_exclude_each_other(seed: str, ours: Path, tmp_path: Path) -> None:
    with_keys = [("--join", seed, "--keys", str(ours / f"{host}.crt")) for host in ("web1", "web2")]
    script = f"echo + >> {tmp_path}/log; sleep 0.01; echo - >> {tmp_path}/log"
    processes = [start("run", "report", *words, "--", "sh", "-c", script) for words in with_keys * 2]
    assert [end(process) for process in processes] == [0] * 4
    assert (tmp_path / "log").read_text() == "+\n-\n" * 4
    holder = inside("report", *with_keys[0])
    found = run("who", *with_keys[1])
    assert "report: 1 of 1 inside, 0 waiting" in found.stdout
    assert f" {holder.pid} " in found.stdout
    assert "guarantee: lease" in found.stdout
    end(holder)


@pytest.mark.parametrize(
    ("theirs", "why"),
    [("no keys", " within 0.5 s: 127.0.0.1:"), ("another authority", " is not signed by this cluster's authority")],
)
def test_a_peer_without_a_certificate_of_this_authority_is_refused(
    theirs: str, why: str, seed: str, make: Make
) -> None:
    words = () if theirs == "no keys" else ("--keys", str(make("theirs", "web1")))
    for command in (("run", "report"), ("who",)):
        rest = ("--", "echo", "in") if command[0] == "run" else ()
        done = run(*command, "--join", seed, "--join-timeout", "0.5", *words, *rest)
        assert (done.returncode, done.stdout) == (2, "")
        said = done.stderr.splitlines()
        assert why in said[-1]
        assert [each for each in said if not each.startswith("fairgate: ")] == []


def test_a_client_without_a_certificate_receives_no_protocol_bytes(seed: str) -> None:
    host, _, port = seed.rpartition(":")
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE
    with socket.create_connection((host, int(port)), SOON) as bare, anybody.wrap_socket(bare) as connection:
        heard = b""
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            heard = connection.recv(1) or fail()
        assert heard == b""


def fail() -> bytes:
    """The end of the connection, which is as good as an error."""
    raise ConnectionResetError


def test_the_refusing_side_logs_the_reason(ours: Path) -> None:
    keeper, seed = standing("--create", "--listen", f"{HERE}:0", "--keys", str(ours / "web1.crt"))
    done = run("who", "--join", seed, "--join-timeout", "0.5")
    assert done.returncode == 2
    assert done.stderr.endswith("it closed the connection, perhaps because it requires TLS: give this peer its keys\n")
    _, _, err = end_by(signal.SIGTERM, keeper)
    said = {line.split(": ", 2)[2] for line in err.splitlines()}
    assert "it does not speak TLS" in said
    assert said <= {"it does not speak TLS", "it closed the connection"}  # the other one, when its time is over


# Off this host.


def test_listening_off_this_host_requires_keys() -> None:
    words = ("peer", "--create", "--listen", "0.0.0.0:0", "--advertise", "10.0.0.5:7400")
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "fairgate: 0.0.0.0:0 is not a loopback address: create keys for TLS with `fairgate keys init` (see --keys), or"
        " use --insecure to let in anyone who can reach it"
    ]
    peer = start(*words, "--insecure")
    assert "at 10.0.0.5:7400 (guarantee: lease)" in line(peer)
    assert end_by(signal.SIGINT, peer) == (130, "SIGINT: leaving\n", "")


def test_dialling_off_this_host_requires_keys() -> None:
    for command, rest in ((("run", "report"), ("--", "true")), (("who",), ())):
        done = run(*command, "--join", "198.51.100.7:7400", *rest)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith("fairgate: 198.51.100.7:7400 is not a loopback address")


def test_keys_in_the_default_directory_are_found(home: Path, say: Say) -> None:
    assert say("keys", "init")[0] == 0
    assert say("keys", "add", "web1", "--also", HERE)[0] == 0
    port = free_port()
    peer, seed = standing("--create", "--listen", f"0.0.0.0:{port}", "--advertise", f"{HERE}:{port}")
    assert "1 peer of cluster fairgate, guarantee" in run("who", "--join", seed, "--keys", str(home)).stdout
    assert (
        run("who", "--join", seed, "--join-timeout", "0.5").returncode == 2
    )  # on this host they are not taken unasked
    assert end_by(signal.SIGTERM, peer)[0] == 0


# Keys that cannot be used.


def test_unusable_keys_are_reported_in_one_line(ours: Path, tmp_path: Path, say: Say) -> None:
    keys.add(ours, "old", [HERE], days=-1)
    for path, words in (
        (ours / "old.crt", "old.crt expired on"),
        (ours, "has keys of old, web1, web2: specify which is this host's, such as"),
        (ours / "web3.crt", "web3.crt does not exist: create it with"),
        (tmp_path / "nowhere", "nowhere does not exist: create keys with"),
        (tmp_path, "has no key of a host"),
    ):
        code, out, err = say("who", "--join", f"{HERE}:1", "--keys", str(path))
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err
    done = run("run", "x", "--join", f"{HERE}:1", "--keys", str(ours / "old.crt"), "--", "true")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "old.crt expired on" in done.stderr
