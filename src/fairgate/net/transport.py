"""All connections of one peer, by Unix socket or TCP: one per pair of peers, whichever side dialled.

    transport = Transport(me, cluster, handler, tls=..., insecure=...)      inside a running loop
    transport.listen(parse_address("127.0.0.1:7400"))
    transport.dial(parse_address("10.0.0.5:7400"))                          keeps trying; learns the peer's id
    transport.dial(address, peer)                                           accepts only this peer
    transport.send(peer, frame)                                             False if it is not up
    transport.up[peer].write_now(encode(frame))                             from any thread, see pipe.py
    transport.hang_up(peer)                                                 also stops dialling
    await transport.close()

The handler gets `on_up(peer)`, then `on_frame(peer, frame)` in the order of sending, then `on_down(peer, why)`, always
from the loop and never from within a call that it made itself. A frame may be lost when its connection breaks;
`recovery/channel.py` handles that. If a handler raises `CodecError` for an invalid frame, the transport logs one line
and closes the connection.

**One connection per pair.** If two peers dial each other at the same time, the one with the smaller id wins: it refuses
the other's hello while its own is pending, and the other gives way. A peer that is up and dials again has lost the old
connection, so the new one replaces it. This happens only once the peer has sent `ready`, because its hello may be a
stale one from a dial that has given way.

Invalid input from outside costs a log line and a connection, never the process.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fairgate.core.ids import ID_LIMIT, NIL, SEAT_BITS
from fairgate.errors import BadInput
from fairgate.net.access import Access, access, credentials
from fairgate.net.address import Address, TcpAddress, UnixAddress, bound_to, check_secure, listen_tcp
from fairgate.net.codec import CodecError, Frame, encode
from fairgate.net.connection import HELLO, PROTOCOL, READY, REFUSED, Connection
from fairgate.net.dial import Dial
from fairgate.net.reader import Reader
from fairgate.net.tls import Tls, explain
from fairgate.net.unix_socket import SocketFile, listen_unix

GREETING_SECONDS = 5.0
CLOSING_SECONDS = 2.0
PAUSE_SECONDS = 1.0  # after a connection could not be accepted
MOST_STRANGERS = 64  # accepted connections that have not finished the greeting
PEERS = ID_LIMIT >> SEAT_BITS
YOURSELF = "this is yourself"
TIE = "both dialled at once"

log = logging.getLogger("fairgate.net")


class Handler(Protocol):
    def on_up(self, peer: int) -> None: ...

    def on_frame(self, peer: int, frame: Frame) -> None: ...

    def on_quiet(self) -> None:
        """All frames that arrived together have been passed on, and the answers to them have been sent."""

    def on_down(self, peer: int, why: str) -> None: ...

    def on_pressure(self, peer: int, full: bool) -> None:
        """The peer reads more slowly than we send (`full`), or has caught up again (not `full`)."""


class Transport:
    def __init__(
        self,
        me: int,
        cluster: str,
        handler: Handler,
        tls: Tls | None = None,
        insecure: bool = False,
        greeting_seconds: float = GREETING_SECONDS,
        elsewhere: Callable[[int, Frame], bool] | None = None,
    ) -> None:
        """With `elsewhere`, users' threads may read too (reader.py) and call it for each frame. If it returns False,
        the frame is passed to `on_frame` in the loop's thread."""
        self.me = me
        self.cluster = cluster
        self.handler = handler
        self.tls = tls
        self.insecure = insecure
        self.greeting_seconds = greeting_seconds
        self.loop = asyncio.get_running_loop()
        self.on_frame: Callable[[int, Frame], None] = handler.on_frame
        self.on_quiet: Callable[[], None] = handler.on_quiet
        self.on_pressure: Callable[[int, bool], None] = handler.on_pressure
        self.up: dict[int, Connection] = {}  # between on_up and on_down
        self.welcomed: dict[int, Connection] = {}  # their hello was answered; they are not ready yet
        self.connections: set[Connection] = set()
        self.dials: list[Dial] = []
        self.listeners: list[socket.socket] = []
        self.files: list[SocketFile] = []  # of Unix sockets
        self.arrived: set[socket.socket] = set()  # accepted, but their tasks have not started yet
        self.strangers: set[asyncio.Task[None]] = set()
        self.to_flush: list[Connection] = []
        self.receiving = False
        self.closing = False
        self.reader = None if elsewhere is None else Reader(self, elsewhere)

    # Listening.

    def listen(self, address: Address) -> Address:
        """Listens, and returns the actual address: for port 0 the system chooses one. `close` removes a socket's file.

        BadInput if the address cannot be used, needs TLS, or is a Unix socket in an unsafe directory (access.py).
        """
        check_secure(address, self.tls is not None, self.insecure)
        if isinstance(address, TcpAddress):
            return self.serve(listen_tcp(address))
        shared = access(Path(address.path).parent).group is not None
        listener = listen_unix(address.path, shared)
        self.files.append(SocketFile(address.path))
        return self.serve(listener)

    def serve(self, listener: socket.socket) -> Address:
        """Accepts connections on a listening socket, and closes it later."""
        address = bound_to(listener)
        rule = access(Path(address.path).parent) if isinstance(address, UnixAddress) else None
        self.listeners.append(listener)
        self.watch(listener, rule)
        return address

    def watch(self, listener: socket.socket, rule: Access | None) -> None:
        """Without `loop.sock_accept`: asyncio's loses a connection that comes in as it is cancelled."""
        if not self.closing:
            self.loop.add_reader(listener.fileno(), self.accept, listener, rule)

    def accept(self, listener: socket.socket, rule: Access | None) -> None:
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it has gone again
            return
        except OSError as wrong:  # most likely too many open files, which may be temporary
            log.error("cannot accept connections: %s", wrong.strerror)
            self.loop.remove_reader(listener.fileno())
            self.loop.call_later(PAUSE_SECONDS, self.watch, listener, rule)
            return
        if len(self.strangers) >= MOST_STRANGERS:
            log.warning("refused a connection: %d others have not sent their hello yet", MOST_STRANGERS)
            sock.close()
            return
        sock.setblocking(False)
        self.arrived.add(sock)
        task = self.loop.create_task(self.admit(sock, rule))
        self.strangers.add(task)
        task.add_done_callback(self.strangers.discard)

    async def admit(self, sock: socket.socket, rule: Access | None) -> None:
        """Takes an accepted socket through the greeting."""
        self.arrived.discard(sock)
        where = "a stranger"
        try:
            where = self.checked_name(sock, rule)
            made = Connection(self, where)
            await self.accepted(sock, made, rule)
        except (OSError, BadInput) as wrong:  # TLS errors are OSErrors
            log.warning("refused %s: %s", where, explain(wrong))
            sock.close()
        else:
            await made.settled

    async def accepted(self, sock: socket.socket, made: Connection, rule: Access | None) -> None:
        tls = self.tls.server if rule is None and self.tls is not None else None
        try:
            await self.loop.connect_accepted_socket(
                lambda: made, sock, ssl=tls, ssl_handshake_timeout=self.greeting_seconds if tls else None
            )
        except asyncio.CancelledError:
            self.connections.discard(made)  # nobody must wait for its end, which uvloop does not report
            made.forget()
            raise

    @staticmethod
    def checked_name(sock: socket.socket, rule: Access | None) -> str:
        if rule is None:
            host, port, *_ = sock.getpeername()
            return str(TcpAddress(host, port))
        who = credentials(sock)
        if not rule.admits(who):
            raise BadInput(f"{who} may not use {rule.folder}")
        return str(who)

    # Dialling.

    def dial(self, address: Address, peer: int = NIL, quiet: bool = False) -> Dial:
        """Keeps a connection to this address. Failures are in `Dial.why`, and in the log unless `quiet`."""
        check_secure(address, self.tls is not None, self.insecure)
        dial = Dial(self, address, peer, quiet)
        self.dials.append(dial)
        return dial

    def hang_up(self, peer: int, why: str = "hung up") -> None:
        """Closes the connection, if there is one, and stops dialling this peer."""
        for dial in [dial for dial in self.dials if dial.peer == peer]:
            self.forget(dial)
        connection = self.up.get(peer)
        if connection is not None:
            connection.close(why)

    def forget(self, dial: Dial) -> None:
        dial.stop()
        self.dials.remove(dial)

    # Called by connections.

    def made(self, connection: Connection) -> None:
        if self.closing or (connection.dial is not None and connection.dial.yielded):
            connection.drop("it is no longer wanted")
            return
        self.connections.add(connection)
        sock = connection.link.get_extra_info("socket")
        if sock.family != socket.AF_UNIX:
            keep_alive(sock)
        dial: Dial | None = connection.dial
        if dial is None:
            return
        if isinstance(dial.address, UnixAddress):
            try:
                self.checked_name(sock, access(Path(dial.address.path).parent))
            except (OSError, BadInput) as wrong:
                connection.drop(str(wrong))
                return
        dial.connection = connection
        self.say_hello(connection, dial.wanted)

    def say_hello(self, connection: Connection, wanted: int) -> None:
        connection.post(encode((HELLO, PROTOCOL, self.cluster, self.me, wanted)))

    def greeted(self, connection: Connection, frame: Frame) -> None:
        if connection.dial is not None:
            self.answered(connection, connection.dial, frame)
        elif connection.peer == NIL:
            self.asked(connection, frame)
        elif frame == (READY,):
            self.bring_up(connection)
        else:
            raise CodecError("expected ready after the hello")

    def asked(self, connection: Connection, frame: Frame) -> None:
        """The other side dialled, and sent its first frame."""
        peer, why = self.judge(frame, NIL)
        why = why or self.tie(peer)
        if why:
            level = logging.DEBUG if why in (TIE, YOURSELF) else logging.WARNING
            log.log(level, "refused %s: %s", connection.where, why)
            connection.post(encode((REFUSED, why)))
            connection.close(why)
            return
        if peer in self.welcomed:
            self.welcomed[peer].drop("it came again")
        self.welcomed[peer] = connection
        connection.is_known(peer)
        self.say_hello(connection, peer)

    def answered(self, connection: Connection, dial: Dial, frame: Frame) -> None:
        """The side that we dialled answered our hello."""
        if frame[:1] == (REFUSED,):
            dial.yielded = frame[-1] == TIE
            connection.drop(f"it refused: {frame[-1]!s:.200}")
            if frame[-1] == YOURSELF:
                self.forget(dial)
            return
        peer, why = self.judge(frame, dial.wanted)
        if why:
            connection.drop(why)
            return
        dial.peer = peer
        other = self.welcomed.get(peer)
        if peer in self.up or (other is not None and peer < self.me):
            dial.give_way()
            return
        if other is not None:
            other.drop("our own connection counts")
        connection.is_known(peer)
        connection.post(encode((READY,)))
        self.bring_up(connection)

    def judge(self, frame: Frame, wanted: int) -> tuple[int, str]:
        """The id in a hello, and the reason to refuse it, if there is one."""
        if [type(part) for part in frame] != [str, int, str, int, int] or frame[0] != HELLO:
            raise CodecError("expected a hello")
        _, version, cluster, peer, wants = frame
        if version != PROTOCOL:
            return peer, f"protocol version {version}, expected {PROTOCOL}"
        if cluster != self.cluster:
            return peer, "the names of the clusters differ"
        if not 0 <= peer < PEERS:
            return peer, f"{peer} is not a valid peer id"
        if wants not in (NIL, self.me):
            return peer, f"expected peer {wants}, found peer {self.me}"
        if wanted not in (NIL, peer):
            return peer, f"expected peer {wanted}, found peer {peer}"
        return peer, YOURSELF if peer == self.me else ""

    def tie(self, peer: int) -> str:
        """If two hellos crossed, the connection that the smaller id dialled stays. Returns the reason to refuse."""
        for dial in self.dials:
            if dial.peer == peer:
                greeting = dial.connection is not None and not dial.connection.up
                if greeting and self.me < peer:
                    return TIE
                if dial.connection is None or greeting:
                    dial.give_way()
        return ""

    def bring_up(self, connection: Connection) -> None:
        peer = connection.peer
        self.welcomed.pop(peer, None)
        old = self.up.get(peer)
        if old is not None:
            old.drop("a new connection replaces it")
            self.take_down(old)
        self.up[peer] = connection
        connection.is_up()
        log.debug("peer %d is up at %s", peer, connection.where)
        self.handler.on_up(peer)

    def lost(self, connection: Connection) -> None:
        self.connections.discard(connection)
        dial: Dial | None = connection.dial
        if dial is not None and dial.connection is connection:
            dial.connection = None
        if self.welcomed.get(connection.peer) is connection:
            del self.welcomed[connection.peer]
        if self.up.get(connection.peer) is connection:
            self.take_down(connection)
        for dial in self.dials:
            dial.changed.set()

    def take_down(self, connection: Connection) -> None:
        del self.up[connection.peer]
        if not self.closing:
            log.debug("peer %d is down: %s", connection.peer, connection.why)
            self.handler.on_down(connection.peer, connection.why)

    # Sending.

    def send(self, peer: int, frame: Frame) -> bool:
        """Sends a frame. False if the peer is not up; CodecError if the frame is not valid."""
        connection = self.up.get(peer)
        if connection is None or not connection.up:
            return False
        connection.post(encode(frame))
        return True

    def is_taken(self, peer: int) -> bool:
        return peer in self.up or peer in self.welcomed

    def unsent(self, connection: Connection) -> None:
        if not self.to_flush and not self.receiving:
            self.loop.call_soon(self.flush)
        self.to_flush.append(connection)

    def flush(self) -> None:
        connections, self.to_flush = self.to_flush, []
        for connection in connections:
            connection.flush()

    # The end.

    async def close(self) -> None:
        """Closes all connections after delivering what was sent, if the others read. No handler is called any more."""
        self.closing = True
        for listener in self.listeners:
            self.loop.remove_reader(listener.fileno())
        tasks = [*self.strangers, *[dial.task for dial in self.dials]]
        for dial in list(self.dials):
            self.forget(dial)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for sock in self.arrived:
            sock.close()
        for file in self.files:
            file.remove()
        for listener in self.listeners:
            listener.close()
        self.listeners.clear()
        open_ones = list(self.connections)
        for connection in open_ones:
            connection.close("this peer ends")
        if open_ones:
            await asyncio.wait([connection.gone for connection in open_ones], timeout=CLOSING_SECONDS)
        for connection in list(self.connections):  # they did not read
            connection.drop("this peer ends")
            await connection.gone
        if self.reader is not None:
            self.reader.close()


def keep_alive(sock: socket.socket) -> None:
    """Makes the kernel notice within about 20 s that a host has vanished, even if nothing is being sent."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 20_000)
