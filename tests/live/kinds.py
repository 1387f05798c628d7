"""The kinds of gates that the generic suite runs on, behind one interface.

    room        the waiting room of this host: join() without arguments
    cluster     a cluster over Unix sockets, with the default protocol
    guests      the same, by way of the standing peer of this host
    fair_k ...  the same with this protocol, for every protocol that can run live

The fixture `kind` (conftest.py) opens one: mark a test with `each_kind` for the room and every protocol, or with
`each_place` for the room and one cluster. The fixture `cluster` is for tests that are about messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fairgate
from fairgate import sync
from fairgate.live.guests import Guests
from fairgate.live.live_protocols import live_protocols
from fairgate.recovery.roster import GateRecord
from fairgate.registry import find_protocol

ROOM, CLUSTER, GUESTS = "room", "cluster", "guests"
PROTOCOLS = live_protocols()
KINDS = (ROOM, GUESTS, *PROTOCOLS)
# In these protocols a request waits for the token that it was assigned to, even while others are idle, so one long stay
# delays every k-th request. With k > 1 they do not grant every free slot to the next request.
ASSIGNED = ("bv95", "fair_k", "fair_k_bounded")


def of_kinds(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", names, indirect=True)


each_kind = of_kinds(*KINDS)
each_place = of_kinds(ROOM, GUESTS, CLUSTER)


def is_many(name: str) -> bool:
    """Whether k may be more than 1."""
    return name not in PROTOCOLS or find_protocol(name).about.many


class Kind:
    def __init__(self, name: str, keeper: sync.Peer | None = None) -> None:
        self.name = name
        self.keeper = keeper  # of the cluster; it uses no gate
        self.seeds = () if keeper is None else (keeper.engine.identity.address,)
        self.protocol = name if name in PROTOCOLS else None

    def join(self, **options: Any) -> Any:
        """An asyncio peer, to be used with `async with`."""
        return fairgate.join(*self.seeds, **options)

    def sync_join(self, **options: Any) -> sync.Peer:
        return sync.join(*self.seeds, **options)

    @property
    def most(self) -> int:
        """The largest k to test with."""
        return 3 if is_many(self.name) else 1

    @property
    def k(self) -> int:
        """The largest k for which every free slot is granted to the next request."""
        return 1 if self.protocol in ASSIGNED else self.most

    @property
    def has_slots(self) -> bool:
        return self.protocol is None or find_protocol(self.protocol).about.slots

    def lose(self, gate: fairgate.Semaphore) -> None:
        """Revokes all permits of the gate, which this process holds."""
        backend: Any = gate.gate
        if self.name in (ROOM, GUESTS):
            for slot in range(gate.k):
                backend.room.revoke(slot)
            return
        with backend.engine.step():
            for ticket in list(backend.gate.tickets.values()):
                backend.gate.lose(ticket, "it was revoked")

    def gate(self, name: str) -> GateRecord | None:
        """The gate in the roster of the cluster."""
        assert self.keeper is not None
        return self.keeper.engine.members.gate(name)

    def pid_of(self, peer: int) -> int | None:
        assert self.keeper is not None
        found = self.keeper.engine.members.peer(peer)
        return None if found is None else found.pid

    def is_unused(self, name: str, k: int) -> bool:
        """Whether nobody waits or is inside; in a cluster, whether the gate is closed."""
        if self.keeper is not None and self.name != GUESTS:
            return self.gate(name) is None
        with self.sync_join() as peer:
            return not peer.semaphore(name, k).requests()

    def state(self, name: str) -> str:
        """A description of a gate for the message of a failed test."""
        if self.keeper is not None:
            return str(self.gate(name))
        with sync.join() as peer:
            return str(peer.lock(name).requests())


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Kind]:
    if name == ROOM:
        yield Kind(name)
        return
    folder.chmod(0o700)
    with sync.join(listen=f"unix:{folder}/0") as keeper:
        if name == GUESTS:
            with Guests(keeper.engine, "fairgate"):
                yield Kind(name, keeper)
        else:
            yield Kind(name, keeper)
