"""Keeps a connection to one address: dials, waits while it is up, dials again.

A failure is logged once, and again only if the reason changes. A refusal that will not go away, such as another
cluster's name, is left to whoever asked to dial (`is_refused`). The delay between attempts doubles up to `SLOWEST` and
is partly random, so that peers that lost the same neighbour do not all reconnect at the same moment.
"""

import asyncio
import logging
import random
from ssl import SSLCertVerificationError
from typing import Protocol

from fairgate.core.ids import NIL
from fairgate.net.address import Address, TcpAddress
from fairgate.net.connection import Connection, ConnectionOwner
from fairgate.net.tls import CLOSED, Tls, explain

FIRST, SLOWEST = 0.02, 3.0  # seconds between attempts
CONNECT_SECONDS = 5.0
UNSAID = ", perhaps because it does not accept our certificate"  # TLS 1.3 in asyncio does not report that
NO_TLS = ", perhaps because it does not use TLS"
NO_KEYS = ", perhaps because it requires TLS: give this peer its keys"

log = logging.getLogger("fairgate.net")


class DialOwner(ConnectionOwner, Protocol):
    """What a dial needs of the transport."""

    tls: Tls | None

    def is_taken(self, peer: int) -> bool:
        """Whether this peer is connected, or in the middle of the greeting."""


class Dial:
    """`peer` is the id of the peer at the address, `NIL` until it is known; `why` is why the last attempt failed."""

    def __init__(self, owner: DialOwner, address: Address, peer: int, quiet: bool = False) -> None:
        self.owner = owner
        self.address = address
        self.wanted = peer
        self.peer = peer
        self.why = ""
        self.refusing = False  # in this attempt, one side refused the other for a reason that will not go away
        self.is_refused = False  # that was so in the last attempt
        self.quiet = quiet
        self.connection: Connection | None = None  # in the greeting, or up
        self.yielded = False  # gave way to a connection that the other side dialled
        self.changed = asyncio.Event()
        self.connecting: asyncio.Task[object] | None = None
        self.task = asyncio.get_running_loop().create_task(self.keep(), name=f"dial {address}")

    async def keep(self) -> None:
        delay = FIRST
        while True:
            while self.owner.is_taken(self.peer):
                delay = FIRST
                self.changed.clear()
                await self.changed.wait()
            if await self.attempt():
                self.why = ""
                continue
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))
            delay = min(2 * delay, SLOWEST)

    async def attempt(self) -> bool:
        """Dials once; returns whether the connection came up."""
        self.yielded = self.refusing = False
        made = Connection(self.owner, str(self.address), self)
        self.connecting = asyncio.get_running_loop().create_task(self.connect(made))
        try:
            done, _ = await asyncio.wait([self.connecting], timeout=CONNECT_SECONDS)
            if not done:
                self.failed("it does not answer")
            elif made.why and self.connection is not made and not self.yielded:  # refused as soon as it was open
                self.failed(self.guessed(made.why, NO_TLS))
            elif not self.connecting.cancelled() and (error := self.connecting.exception()) is not None:
                self.refusing = isinstance(error, SSLCertVerificationError)
                self.failed(self.guessed(explain(error), NO_TLS))
            elif self.connection is made:
                if await made.settled:
                    return True
                if not self.yielded:
                    self.failed(self.guessed(made.why, UNSAID))
        finally:
            if self.connection is not made:  # otherwise connecting is done
                self.connecting.cancel()
                made.forget()
            elif not made.up:
                self.connection = None
        return False

    async def connect(self, made: Connection) -> None:
        loop = asyncio.get_running_loop()
        if isinstance(self.address, TcpAddress):
            tls = self.owner.tls
            await loop.create_connection(
                lambda: made, self.address.host, self.address.port, ssl=None if tls is None else tls.client
            )
        else:
            await loop.create_unix_connection(lambda: made, self.address.path)

    def guessed(self, why: str, with_keys: str) -> str:
        """Adds why the other side may have closed the connection without a word; `with_keys` if we use TLS."""
        if why != CLOSED or not isinstance(self.address, TcpAddress):
            return why
        return why + (NO_KEYS if self.owner.tls is None else with_keys)

    def failed(self, why: str) -> None:
        level = logging.DEBUG if self.quiet or why == self.why or self.refusing else logging.WARNING
        log.log(level, "cannot reach %s: %s, trying again", self.name(), why)
        self.why = why
        self.is_refused = self.refusing

    def give_way(self) -> None:
        """Gives up in favour of the connection that the other side dialled."""
        self.yielded = True
        if self.connection is not None:
            self.connection.drop("the other side's connection came first")
        elif self.connecting is not None:
            self.connecting.cancel()

    def stop(self) -> None:
        """Stops dialling for good. A connection that is up stays."""
        self.task.cancel()
        if self.connection is not None and not self.connection.up:
            self.connection.drop("it is no longer wanted")

    def name(self) -> str:
        return str(self.address) if self.wanted == NIL else f"peer {self.wanted} at {self.address}"
