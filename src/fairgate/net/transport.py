"""All connections of one peer, by Unix socket or TCP: one per pair of peers, whichever side dialled.

    transport = Transport(me, cluster, handler, tls=..., secret=...)        inside a running loop
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

**Who is there.** A connection has a `principal`: what the other end has proved (principal.py). An id belongs to one
principal as long as that peer is up, and beyond that for as long as the handler says (`may_be`).

Invalid input from outside costs a log line and a connection, never the process. What one principal can use up with many
connections is bounded (crowd.py).
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from fairgate.arguments import printable
from fairgate.core.ids import ID_LIMIT, NIL, SEAT_BITS
from fairgate.errors import BadInput
from fairgate.net.access import access
from fairgate.net.address import Address, UnixAddress, check_secure
from fairgate.net.codec import CodecError, Frame, encode
from fairgate.net.connection import HELLO, PROTOCOL, READY, REFUSED, Connection
from fairgate.net.crowd import Crowd
from fairgate.net.dial import Dial
from fairgate.net.listening import Listening, checked_name
from fairgate.net.principal import NOTHING, SECRET, fingerprint_of, principal_of
from fairgate.net.rationed_log import RationedLog
from fairgate.net.reader import Reader
from fairgate.net.secret import ACCEPTS, CHALLENGE, DIALS, Proving, Secret, Unproved
from fairgate.net.tls import Tls

GREETING_SECONDS = 5.0
CLOSING_SECONDS = 2.0
KEYS_SECONDS = 2.0  # between two looks at the files of keys
FRAME_SECONDS = 15.0  # a frame that has begun to arrive takes at most twice as long
PEERS = ID_LIMIT >> SEAT_BITS
YOURSELF = "this is yourself"
TIE = "both dialled at once"
DENIED = "its key is on the deny list"
NO_SECRET = "this peer was given no secret"

log = logging.getLogger("fairgate.net")


class Handler(Protocol):
    def may_be(self, peer: int, principal: str) -> bool:
        """Whether whoever has proved to be this principal (principal.py) may have this id. Asked in the greeting."""

    def is_member(self, peer: int) -> bool:
        """Whether the roster lists this id. Those that it does not list are bounded (crowd.py)."""

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
        secret: Secret | None = None,
        greeting_seconds: float = GREETING_SECONDS,
        frame_seconds: float = FRAME_SECONDS,
        elsewhere: Callable[[int, Frame], bool] | None = None,
    ) -> None:
        """With `elsewhere`, users' threads may read too (reader.py) and call it for each frame. If it returns False,
        the frame is passed to `on_frame` in the loop's thread."""
        self.me = me
        self.cluster = cluster
        self.handler = handler
        self.tls = tls
        self.insecure = insecure
        self.secret = secret
        self.greeting_seconds = greeting_seconds
        self.frame_seconds = frame_seconds
        self.strangers_log = RationedLog(log)
        self.members_log = RationedLog(log)
        self.refused = ""  # why a connection was refused last, if that is likely to happen again
        self.loop = asyncio.get_running_loop()
        self.on_frame: Callable[[int, Frame], None] = handler.on_frame
        self.on_quiet: Callable[[], None] = handler.on_quiet
        self.is_member: Callable[[int], bool] = handler.is_member
        self.on_pressure: Callable[[int, bool], None] = handler.on_pressure
        self.up: dict[int, Connection] = {}  # between on_up and on_down
        self.welcomed: dict[int, Connection] = {}  # their hello was answered; they are not ready yet
        self.connections: set[Connection] = set()
        self.dials: list[Dial] = []
        self.to_flush: list[Connection] = []
        self.receiving = False
        self.closing = False
        self.reader = None if elsewhere is None else Reader(self, elsewhere)
        self.listening = Listening(self)
        self.crowd = Crowd(self)
        self.begun: Callable[[Connection], None] = self.crowd.begun
        self.filled: Callable[[Connection], None] = self.crowd.filled
        self.half_frames: dict[Connection, bytearray] = {}  # begun and not complete at the last look
        self.timer = self.loop.call_later(frame_seconds, self.drop_half_frames)
        self.keys_timer = self.loop.call_later(KEYS_SECONDS, self.look_at_keys)

    def listen(self, address: Address) -> Address:
        """Listens, and returns the actual address: for port 0 the system chooses one. `close` removes a socket's file.

        BadInput if the address cannot be used, needs TLS or a secret, or is a Unix socket in an unsafe directory
        (access.py).
        """
        self.check_secure(address)
        return self.listening.listen(address)

    def check_secure(self, address: Address) -> None:
        check_secure(address, self.tls is not None, self.insecure, self.secret is not None)

    # Dialling.

    def dial(self, address: Address, peer: int = NIL, quiet: bool = False) -> Dial:
        """Keeps a connection to this address. Failures are in `Dial.why`, and in the log unless `quiet`."""
        self.check_secure(address)
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
        if dial is not None:
            dial.connection = connection
        try:
            if dial is not None and isinstance(dial.address, UnixAddress):
                checked_name(sock, access(Path(dial.address.path).parent))
            connection.principal = principal_of(connection.link)
        except (OSError, BadInput) as wrong:
            connection.drop(str(wrong))
            return
        if self.is_denied(connection):
            self.turn_away(connection, DENIED)
            return
        if self.secret is not None and connection.principal == NOTHING:
            connection.proving = self.proving(self.secret, connection)
        if dial is not None:
            if connection.proving is not None:
                connection.post(encode(connection.proving.begin()))
            else:
                self.say_hello(connection, dial.wanted)

    def proving(self, secret: Secret, connection: Connection) -> Proving:
        ours, theirs = connection.link.get_extra_info("sockname"), connection.link.get_extra_info("peername")
        if connection.dial is not None:
            return Proving(secret, self.cluster, DIALS, (ours, theirs))
        return Proving(secret, self.cluster, ACCEPTS, (theirs, ours))

    def say_hello(self, connection: Connection, wanted: int) -> None:
        connection.post(encode((HELLO, PROTOCOL, self.cluster, self.me, wanted)))

    def greeted(self, connection: Connection, frame: Frame) -> None:
        refused = connection.dial is not None and frame[:1] == (REFUSED,)
        if connection.proving is not None and not refused:
            self.prove(connection, connection.proving, frame)
        elif connection.dial is not None:
            self.answered(connection, connection.dial, frame)
        elif connection.peer == NIL:
            self.asked(connection, frame)
        elif frame == (READY,):
            self.bring_up(connection)
        else:
            raise CodecError("expected ready after the hello")

    def prove(self, connection: Connection, proving: Proving, frame: Frame) -> None:
        """Both sides prove that they know the secret. Then the dialling side sends its hello."""
        try:
            answer = proving.answer(frame)
        except Unproved as wrong:
            self.turn_away(connection, str(wrong))
            return
        if answer:
            connection.post(encode(answer))
        if proving.done:
            connection.proving = None
            connection.principal = SECRET
            if connection.dial is not None:
                self.say_hello(connection, connection.dial.wanted)

    def turn_away(self, connection: Connection, why: str) -> None:
        if connection.dial is None:
            self.refuse(connection, why)
        else:
            connection.dial.refusing = True
            connection.drop(why)

    def refuse(self, connection: Connection, why: str) -> None:
        if why in (TIE, YOURSELF, self.refused):
            log.debug("refused %s: %s", connection.where, why)
        else:
            self.refused = why if why.startswith("expected peer") else ""  # a member dials again and again
            self.strangers_log.warning("refused %s: %s", connection.where, why)
        connection.post(encode((REFUSED, why)))
        connection.close(why)

    def asked(self, connection: Connection, frame: Frame) -> None:
        """The other side dialled, and sent its first frame."""
        if frame[:1] == (CHALLENGE,):
            self.refuse(connection, NO_SECRET)
            return
        peer, why = self.judge(frame, NIL)
        why = why or self.impostor(connection, peer) or self.tie(peer)
        if why:
            self.refuse(connection, why)
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
            dial.refusing = dial.wanted == NIL and frame[-1] not in (TIE, YOURSELF)
            connection.drop(f"it refused: {printable(str(frame[-1])):.200}")
            if frame[-1] == YOURSELF:
                self.forget(dial)
            return
        peer, why = self.judge(frame, dial.wanted)
        why = why or self.impostor(connection, peer)
        if why:
            dial.refusing = dial.wanted == NIL
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
            return peer, f"expected peer {wants}, found peer {self.me}, perhaps after a restart"
        if wanted not in (NIL, peer):
            return peer, f"expected peer {wanted}, found peer {peer}"
        return peer, YOURSELF if peer == self.me else ""

    def impostor(self, connection: Connection, peer: int) -> str:
        """Why this connection cannot be that peer's, if it cannot: another process or host has that id."""
        known = self.up.get(peer)
        same = known is None or known.principal == connection.principal
        return "" if same and self.handler.may_be(peer, connection.principal) else f"peer {peer} is another process"

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
        self.crowd.came_up(connection)
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

    def hold(self) -> bool:
        """What is sent from now on leaves at `let_go`, which must follow, and not at the end of this turn of the loop.
        Returns what to pass to it."""
        before, self.receiving = self.receiving, True
        return before

    def let_go(self, before: bool) -> None:
        self.receiving = before
        self.flush()

    def flush(self) -> None:
        connections, self.to_flush = self.to_flush, []
        for connection in connections:
            connection.flush()

    # Limits.

    def drop_half_frames(self) -> None:
        """Closes connections on which the same frame is incomplete as at the last look: its bytes are in the same
        buffer (codec.py)."""
        self.timer = self.loop.call_later(self.frame_seconds, self.drop_half_frames)
        begun = {each: each.decoder.rest for each in self.connections if each.up and each.decoder.rest}
        before, self.half_frames = self.half_frames, begun
        for connection, rest in begun.items():
            if before.get(connection) is rest:
                why = f"it sent only part of a frame within {self.frame_seconds:g} s"
                connection.drop(why, logging.WARNING)

    # Keys that change while we run.

    def look_at_keys(self) -> None:
        """Uses changed files for new connections, and closes those of keys that are denied now."""
        if self.tls is None:
            return
        self.keys_timer = self.loop.call_later(KEYS_SECONDS, self.look_at_keys)
        try:
            if self.tls.refresh():
                log.info("the files of keys have changed: new connections use them")
        except BadInput as wrong:
            log.warning("the files of keys have changed, but the old ones stay in use: %s", wrong)
        for connection in [each for each in self.connections if self.is_denied(each)]:
            connection.drop(DENIED, logging.WARNING)

    def is_denied(self, connection: Connection) -> bool:
        return self.tls is not None and fingerprint_of(connection.principal) in self.tls.denied

    # The end.

    async def close(self) -> None:
        """Closes all connections after delivering what was sent, if the others read. No handler is called any more."""
        self.closing = True
        self.timer.cancel()
        self.keys_timer.cancel()
        tasks = [*self.listening.stop(), *[dial.task for dial in self.dials]]
        for dial in list(self.dials):
            self.forget(dial)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.listening.close()
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
