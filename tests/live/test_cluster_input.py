"""Bad options of `run`, `peer`, `who`, `top` and `break`: one line on stderr, exit code 2, no traceback."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairgate.cli.run.in_cluster import settings
from fairgate.cli.run.options import read_options
from tests.live.commands import SOON, Say, line, run, start
from tests.live.test_hosts import free_port

HERE = "127.0.0.1"
CREATE = ("--create", "--listen", f"{HERE}:0")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRGATE_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


def complaint(code: int, out: str, err: str) -> str:
    """The one line on stderr."""
    assert (code, out) == (2, "")
    assert err.startswith("fairgate: ")
    assert err.count("\n") == 1
    return err.removeprefix("fairgate: ").rstrip("\n")


def complaint_of(*words: str) -> str:
    """The same, of a command run in its own process."""
    done = run(*with_command(words))
    return complaint(done.returncode, done.stdout, done.stderr)


EACH = pytest.mark.parametrize("command", [("run", "x"), ("peer",), ("who",), ("break", "x", "0", "--yes")])


def with_command(words: tuple[str, ...]) -> tuple[str, ...]:
    return (*words, "--", "true") if words[0] == "run" else words


@EACH
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--join", "nowhere"), "cannot read the address nowhere: write it as host:port, such as 10.0.0.5:7400"),
        (("--cluster", "lab"), "--cluster is only for clusters of several hosts: add --join HOST:PORT"),
        (("--join", "h:1", "--keys", "k", "--insecure"), "--keys is for TLS and --insecure disables TLS"),
        (("--join", "h:1", "--join-timeout", "0"), "--join-timeout must be more than 0 seconds, not 0"),
    ],
)
def test_bad_options_of_every_command(
    command: tuple[str, ...], words: tuple[str, ...], expected: str, say: Say
) -> None:
    assert complaint(*say(*with_command((*command, *words)))).startswith(expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("peer", "--create", "--join", "h:1"), "--create creates a cluster and --join joins an existing one"),
        (("peer", "--listen", "h:1"), "--listen is only for clusters of several hosts: add --join HOST:PORT or"),
        (("peer", "--create", "--listen", "70000"), "cannot read the address 70000"),
        (("peer", *CREATE, "--advertise", "x"), "cannot read the address x"),
        (("peer", "--metrics", "x"), "invalid value for '--metrics'"),
        (("run", "x", "--metrics", "x"), "--metrics must be a whole number from 0 to 65535, not 'x'"),
        (("run", "x", "--create"), "unrecognized arguments: --create (see"),
        (("run", "x", "-k", "1001"), "-k must be a whole number from 1 to 1000, not '1001'"),
        (
            ("run", "x", "-w", "1e10"),
            "--wait must be a duration up to 1e+09 s, such as",
        ),
        (("peer", "x", "-k", "1001"), "k must be a whole number from 1 to 1000, not 1001"),
        (("break", "x", "one"), "invalid value for 'SLOT': it must be a number, as `fairgate who` shows it, not 'one'"),
        (("who", "--join", "unix:x"), "cannot read the address unix:x: write unix: followed by an absolute path"),
        (("who", "--join", "unix:/x", "--join", "h:1"), "a cluster uses either Unix sockets or TCP: unix:/x and h:1"),
        (("who", "--listen", "h:1"), "no such option: --listen"),
        (("top", "--join", "h:1"), "top needs a terminal"),
    ],
)
def test_bad_options_of_one_command(words: tuple[str, ...], expected: str, say: Say) -> None:
    assert complaint(*say(*with_command(words))).startswith(expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("peer", "--create"), "a peer that creates a cluster needs an address to listen on, such as 10.0.0.5:7400"),
        (("peer", "--create", "--listen", "0.0.0.0:0", "--insecure"), "no host can dial 0.0.0.0:0"),
        (("peer", *CREATE, "--advertise", "unix:/x"), f"a cluster uses either Unix sockets or TCP: unix:/x and {HERE}"),
        (("peer", "a", "b", *CREATE, "--journal", "/dev/null"), "/dev/null is the journal of gate a: put {gate}"),
        (("peer", "x", *CREATE, "--journal", "/none/j"), "cannot write the journal /none/j: No such file"),
    ],
)
def test_bad_options_that_are_found_after_start_up(words: tuple[str, ...], expected: str) -> None:
    assert complaint_of(*words).startswith(expected)


def test_ports_in_use() -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
        for words in (("peer", "--create", "--listen"), ("run", "x", "--join", f"{HERE}:1", "--listen")):
            assert complaint_of(*words, f"{HERE}:{port}") == f"cannot listen on {HERE}:{port}: Address already in use"
        expected = f"cannot serve metrics at {HERE}:{port}: Address already in use"
        assert complaint_of("peer", *CREATE, "--metrics", str(port)) == expected


@EACH
def test_an_unreachable_seed_is_retried_until_the_timeout(command: tuple[str, ...]) -> None:
    seed = f"{HERE}:{free_port()}"
    done = run(*with_command((*command, "--join", seed, "--join-timeout", "0.3")))
    assert (done.returncode, done.stdout) == (2, "")
    said = done.stderr.splitlines()
    assert said[0] == f"fairgate: cannot reach {seed}: connection refused, trying again"
    assert said[1].startswith("fairgate: ")
    assert said[1].endswith(f" within 0.3 s: {seed}: connection refused")
    assert len(said) == 2


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ((), None),  # as long as by default
        (("-n",), 5),
        (("-w", "0"), 5),
        (("-w", "2"), 5),
        (("-w", "7.5"), 7.5),
        (("-w", "600"), 30),
        (("-w", "2", "--join-timeout", "20"), 20),
    ],
)
def test_a_run_that_must_not_wait_long_does_not_try_to_join_for_long(
    words: tuple[str, ...], seconds: float | None
) -> None:
    options = read_options(["gpu", "--join", "10.0.0.5:7400", *words, "--", "true"])
    assert settings(options).join_timeout == seconds


def test_a_seed_that_answers_late_is_joined() -> None:
    seed = f"{HERE}:{free_port()}"
    early = start("run", "report", "--join", seed, "--", "echo", "in")
    assert early.stderr is not None
    assert early.stderr.readline().decode() == f"fairgate: cannot reach {seed}: connection refused, trying again\n"
    keeper = start("peer", "--create", "--listen", seed)
    assert f"at {seed} " in line(keeper)
    assert early.communicate(timeout=SOON) == (b"in\n", b"")
    assert early.returncode == 0
    keeper.send_signal(signal.SIGTERM)
    assert keeper.communicate(timeout=SOON) == (b"SIGTERM: leaving\n", b"")


@pytest.mark.parametrize(
    ("words", "module", "expected"),
    [
        (("--metrics", "0"), "prometheus_client", "metrics need the package prometheus-client: pip install"),
        (("--mdns",), "zeroconf", "mDNS needs the package zeroconf: pip install zeroconf"),
    ],
)
def test_a_missing_optional_dependency_is_named(words: tuple[str, ...], module: str, expected: str) -> None:
    lines = f"import sys; sys.modules[{module!r}] = None; from fairgate.cli import main; main()"
    seed = () if "--mdns" in words else ("--join", f"{HERE}:1")
    commands = [("run", "x", *seed, *words, "--", "true"), ("peer", *CREATE, *words)]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-c", lines, *command], capture_output=True, text=True, timeout=SOON, check=False
        )
        assert complaint(done.returncode, done.stdout, done.stderr).startswith(expected)
