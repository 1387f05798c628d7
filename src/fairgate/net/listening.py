"""The sockets that a peer listens on, and the connections that arrive there, up to the end of the greeting.

Until the greeting is over, the other side is a *stranger*. Strangers can neither lock others out nor use up memory or
descriptors. There are limits for all of them and for each address. Where one is reached, the stranger that came first
goes: a peer needs a few round trips for its greeting, so the one that has been silent for longest is the least likely
to be one. A few descriptors always stay free for the rest of the process.
"""

import asyncio
import logging
import resource
import socket
from pathlib import Path
from typing import Protocol

from fairgate.errors import BadInput
from fairgate.net.access import Access, access, credentials
from fairgate.net.address import Address, TcpAddress, UnixAddress, bound_to, listen_tcp
from fairgate.net.connection import Connection, ConnectionOwner
from fairgate.net.rationed_log import RationedLog
from fairgate.net.tls import Tls, explain
from fairgate.net.unix_socket import SocketFile, listen_unix

PAUSE_SECONDS = 1.0  # after a connection could not be accepted
MOST_STRANGERS = 256
MOST_PER_ADDRESS = 128  # hosts may start a hundred commands at once
SPARE_DESCRIPTORS = 64

log = logging.getLogger("fairgate.net")


class ListeningOwner(ConnectionOwner, Protocol):
    """What this module needs of the transport."""

    loop: asyncio.AbstractEventLoop
    tls: Tls | None
    connections: set[Connection]
    closing: bool
    strangers_log: RationedLog


class Stranger:
    """A connection before the end of its greeting. `sock` is None as soon as its task has taken it over."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.sock: socket.socket | None = sock
        self.connection: Connection | None = None
        self.address = address

    def has_greeted(self) -> bool:
        """Its task may not have noticed yet."""
        return self.connection is not None and self.connection.settled.done()


class Listening:
    def __init__(self, owner: ListeningOwner) -> None:
        self.owner = owner
        self.loop = owner.loop
        self.listeners: list[socket.socket] = []
        self.files: list[SocketFile] = []  # of Unix sockets
        self.strangers: dict[asyncio.Task[None], Stranger] = {}  # the oldest first

    def listen(self, address: Address) -> Address:
        """Listens, and returns the actual address. BadInput if it cannot be used."""
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
        if not self.owner.closing:
            self.loop.add_reader(listener.fileno(), self.accept, listener, rule)

    def accept(self, listener: socket.socket, rule: Access | None) -> None:
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it has gone again
            return
        except OSError as wrong:  # most likely too many open files, which may be temporary
            self.owner.strangers_log.warning("cannot accept connections: %s", wrong.strerror)
            self.loop.remove_reader(listener.fileno())
            self.loop.call_later(PAUSE_SECONDS, self.watch, listener, rule)
            return
        sock.setblocking(False)
        try:
            address, where = address_of(sock, rule), checked_name(sock, rule)
        except (OSError, BadInput) as wrong:
            self.owner.strangers_log.warning("refused a connection: %s", explain(wrong))
            sock.close()
            return
        if self.has_room(sock, address):
            stranger = Stranger(sock, address)
            task = self.loop.create_task(self.admit(stranger, where, rule))
            self.strangers[task] = stranger
            task.add_done_callback(lambda done: self.strangers.pop(done, None))
        else:
            sock.close()

    # Limits.

    def has_room(self, sock: socket.socket, address: str) -> bool:
        """Evicts the oldest stranger where a limit is reached. False if there is none to evict."""
        strangers = [task for task, stranger in self.strangers.items() if not stranger.has_greeted()]
        same = [task for task in strangers if self.strangers[task].address == address]
        if len(same) >= MOST_PER_ADDRESS:
            self.evict(same[0], f"{MOST_PER_ADDRESS} others from {address} came after it")
        elif len(strangers) >= MOST_STRANGERS:
            self.evict(strangers[0], f"{MOST_STRANGERS} others came after it")
        elif sock.fileno() >= highest_descriptor():  # the kernel assigns the lowest that is free
            why = "this process has nearly as many open files as it may have (ulimit -n)"
            if not strangers:
                self.owner.strangers_log.warning("refused a connection from %s: %s", address, why)
                return False
            self.evict(strangers[0], why)
        return True

    def evict(self, task: asyncio.Task[None], why: str) -> None:
        stranger = self.strangers.pop(task)
        self.owner.strangers_log.warning(
            "closed the connection with %s, which has not finished its greeting: %s", stranger.address, why
        )
        task.cancel()
        if stranger.sock is not None:  # the task will never start
            stranger.sock.close()

    # The greeting.

    async def admit(self, stranger: Stranger, where: str, rule: Access | None) -> None:
        """Takes an accepted socket through the greeting."""
        sock, stranger.sock = stranger.sock, None
        assert sock is not None
        stranger.connection = made = Connection(self.owner, where)
        try:
            await self.connect(sock, made, rule)
        except OSError as wrong:  # TLS errors are OSErrors
            self.owner.strangers_log.warning("refused %s: %s", where, explain(wrong))
            sock.close()
            return
        try:
            await made.settled
        except asyncio.CancelledError:
            made.drop("it has not finished its greeting")
            raise

    async def connect(self, sock: socket.socket, made: Connection, rule: Access | None) -> None:
        tls = self.owner.tls.server if rule is None and self.owner.tls is not None else None
        try:
            await self.loop.connect_accepted_socket(
                lambda: made, sock, ssl=tls, ssl_handshake_timeout=self.owner.greeting_seconds if tls else None
            )
        except asyncio.CancelledError:
            self.owner.connections.discard(made)  # nobody must wait for its end, which uvloop does not report
            made.forget()
            raise

    # The end.

    def stop(self) -> list[asyncio.Task[None]]:
        """Stops accepting, and cancels the greetings. Returns their tasks."""
        for listener in self.listeners:
            self.loop.remove_reader(listener.fileno())
        tasks = list(self.strangers)
        for task, stranger in self.strangers.items():
            task.cancel()
            if stranger.sock is not None:
                stranger.sock.close()
        return tasks

    def close(self) -> None:
        for file in self.files:
            file.remove()
        for listener in self.listeners:
            listener.close()
        self.listeners.clear()


def address_of(sock: socket.socket, rule: Access | None) -> str:
    """Whose strangers count together: those of one host, or of one user of this host."""
    return str(sock.getpeername()[0]) if rule is None else f"user {credentials(sock).uid}"


def checked_name(sock: socket.socket, rule: Access | None) -> str:
    """The name of the other end, for log lines. BadInput if it may not use this socket."""
    if rule is None:
        host, port, *_ = sock.getpeername()
        return str(TcpAddress(host, port))
    who = credentials(sock)
    if not rule.admits(who):
        raise BadInput(f"{who} may not use {rule.folder}")
    return str(who)


def highest_descriptor() -> int:
    """Sockets with this number or a higher one are refused."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if most == resource.RLIM_INFINITY:
        return 1 << 30
    return max(most - SPARE_DESCRIPTORS, most // 2)
