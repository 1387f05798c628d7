"""Bad input from outside costs one log line and a connection, never the peer."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from struct import Struct

import pytest

from fairgate.net.access import Access, Credentials, access, credentials
from fairgate.net.address import TcpAddress
from fairgate.net.codec import LIMIT, VERSION, encode
from fairgate.net.connection import HELLO_LIMIT, PROTOCOL
from tests.live.peers import Peer, Stranger, close_all, hello, lines, run, until

HEAD = Struct(">IB")  # length and version
RUDE = {  # input -> a part of the log line
    "garbage": (b"GET / HTTP/1.1\r\nHost: gate\r\n\r\n", "it sent an invalid frame: frame version"),
    "zeros": (bytes(100), "it sent an invalid frame: frame version 0"),
    "another version of frames": (
        HEAD.pack(2, VERSION + 1) + b"\x90",
        f"frame version {VERSION + 1}, expected {VERSION}",
    ),
    "a frame over the limit": (HEAD.pack(LIMIT + 1, VERSION), f"a frame of {LIMIT + 1} bytes"),
    "a stranger's frame over its small limit": (HEAD.pack(HELLO_LIMIT + 1, VERSION), f"at most {HELLO_LIMIT}"),
    "not MessagePack": (HEAD.pack(3, VERSION) + b"\xc1\xc1", "invalid MessagePack"),
    "no hello": (encode(("token", 1)), "expected a hello"),
    "a hello of wrong kinds": (encode(("hello", "1", 2, 3, 4)), "expected a hello"),
    "an empty frame": (encode(()), "expected a hello"),
    "another cluster": (hello(7, "theirs"), "the names of the clusters differ"),
    "another version of peers": (
        hello(7, version=PROTOCOL + 1),
        f"protocol version {PROTOCOL + 1}, expected {PROTOCOL}",
    ),
    "another peer is wanted": (hello(7, wanted=8), "expected peer 8, found peer 1"),
    "an id that none can have": (hello(1 << 60), "is not a valid peer id"),
    "silence": (b"", "no hello within"),
    "half a hello": (hello(7)[:-3], "no hello within"),
    "frames before it was ready": (hello(7) + encode(("token", 1)), "expected ready after the hello"),
    "never ready": (hello(7), "no hello within"),
}


@pytest.mark.parametrize("fast", [False, True], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("rude", RUDE)
def test_bad_input_costs_the_connection(
    rude: str, fast: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if fast:
        pytest.importorskip("uvloop")
    said, expected = RUDE[rude]
    waits = expected == "no hello within"

    async def main() -> None:
        one = Peer(1, greeting_seconds=0.05 if waits else 20)
        address = one.listen(tmp_path)
        stranger = await Stranger.at(address)
        stranger.say(said)
        answers = await stranger.answers()  # until the connection is closed
        assert all(answer[0] in ("refused", "hello") for answer in answers)
        await stranger.close()
        assert one.told == []
        await until(lambda: not one.transport.connections and not one.transport.listening.strangers)
        two = Peer(2)  # the peer still works
        two.transport.dial(address)
        await one.until("up", 2)
        await close_all(one, two)

    run(main(), fast)
    warnings = lines([record for record in caplog.records if record.levelname == "WARNING"])
    assert len(warnings) == 1, warnings
    assert expected in warnings[0]


def test_a_peer_that_sends_garbage_after_the_greeting_is_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        one = Peer(1)
        stranger = await Stranger.at(one.listen(tmp_path))
        await stranger.greet(7)
        stranger.say(encode(("good",)))
        await one.until("frame", 7)
        stranger.say(b"\xff" * 9)
        assert await stranger.answers() == []
        assert "it sent an invalid frame" in (await one.until("down", 7))[2]
        await stranger.close()
        await one.transport.close()

    run(main())
    assert len(lines(caplog.records)) == 1


def test_a_member_that_dials_the_peer_of_before_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        one = Peer(1)
        address = one.listen(tmp_path)
        for _ in range(3):
            stranger = await Stranger.at(address)
            stranger.say(hello(7, wanted=8))
            assert len(await stranger.answers()) == 1
            await stranger.close()
        await close_all(one)

    run(main())
    assert caplog.text.count("expected peer 8, found peer 1, perhaps after a restart") == 1


def test_bare_tcp_noise(caplog: pytest.LogCaptureFixture) -> None:
    """Like a port scanner, which connects and disconnects."""

    async def main() -> None:
        one = Peer(1)
        address = one.transport.listen(TcpAddress("127.0.0.1", 0))
        assert isinstance(address, TcpAddress)
        for _ in range(20):
            with socket.create_connection((address.host, address.port)) as sock:
                sock.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                )  # reset instead of a clean close
        two = Peer(2)
        two.transport.dial(address)
        await one.until("up", 2)
        await close_all(one, two)

    run(main())


# Access to a directory.

NOBODY = 65534


def test_the_access_rule_of_a_directory() -> None:
    me = os.geteuid()
    private, shared = Access(Path("x"), me, None), Access(Path("x"), 0, 77)
    stranger, member = Credentials(1, me + 1, frozenset([5])), Credentials(1, me + 1, frozenset([5, 77]))
    mine, roots = Credentials(1, me, frozenset([me])), Credentials(1, 0, frozenset([0]))
    assert [private.admits(who) for who in (mine, stranger, member)] == [True, False, False]
    assert [shared.admits(who) for who in (mine, stranger, member, roots)] == [True, False, True, True]


def test_credentials_come_from_the_kernel() -> None:
    one, two = socket.socketpair()
    with one, two:
        assert credentials(one) == Credentials(os.getpid(), os.geteuid(), frozenset([os.getegid(), *os.getgroups()]))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_is_refused_by_credentials(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Normally the directory keeps others out; here it and the socket are opened up after the peer checked them."""

    def as_nobody(path: str) -> None:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setresgid(NOBODY, NOBODY, NOBODY)
                os.setresuid(NOBODY, NOBODY, NOBODY)
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(path)
                sock.sendall(hello(7))
                os.write(writer, b"closed" if sock.recv(100) == b"" else b"let in")
            except ConnectionError:
                os.write(writer, b"closed")
            except BaseException as wrong:
                os.write(writer, repr(wrong).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            assert pipe.read() == b"closed"
        os.waitpid(child, 0)

    async def main(folder: Path) -> None:
        one = Peer(1)
        one.listen(folder)
        path = folder / "1.sock"
        path.chmod(0o666)
        folder.chmod(0o755)
        await asyncio.get_running_loop().run_in_executor(None, as_nobody, str(path))
        assert one.told == []
        await one.transport.close()

    run(main(tmp_path))
    assert [f"of user {NOBODY} may not use {tmp_path}" in line for line in lines(caplog.records)] == [True]


def test_directories_with_unsafe_modes_are_refused(tmp_path: Path) -> None:
    for mode in (0o700, 0o755, 0o750):  # nobody else can write
        tmp_path.chmod(mode)
        assert access(tmp_path).group is None
    tmp_path.chmod(0o770)
    assert access(tmp_path).group == tmp_path.stat().st_gid
    for mode, words in ((0o777, "use a directory of your own"), (0o720, "set mode 0700"), (0o1770, "sticky")):
        tmp_path.chmod(mode)
        with pytest.raises(ValueError, match=words):
            access(tmp_path)
    with pytest.raises(ValueError, match="No such file"):
        access(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="not a directory"):
        access(tmp_path / "file")
