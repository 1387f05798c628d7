"""The faults of a torture: one after the other, at random, but never so many at once that no majority is left."""

import random
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from fairgate.torture.guest import GuestPlan, now
from fairgate.torture.history import SECOND, Absence
from fairgate.torture.host import Host, Running
from fairgate.torture.network import Network

Undo = Callable[[], None]

KILL_GUEST, KILL_PEER, STOP_GUEST, STOP_PEER = "guests killed", "peers killed", "guests stopped", "peers stopped"
CUT_OFF, CUT_ONE_WAY, CUT_PAIR = "hosts cut off", "one-way cuts", "pairs cut"
LEAVE = "guests that left"
NO_HOST = -1
RETURN = 2 * SECOND  # how long a peer may take to be back
VOTES_AGAIN = 3  # leases after which a peer that was away has surely become a voter again


@dataclass
class Pending:
    """A fault that has to be undone."""

    due: int
    undo: Undo
    absence: Absence
    host: int


@dataclass
class Faults:
    hosts: list[Host]
    network: Network
    lease: float
    guest: GuestPlan
    random: random.Random
    done: Counter[str] = field(default_factory=Counter)
    pending: list[Pending] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    back: dict[int, int] = field(default_factory=dict)  # by host: when its peer votes again
    moments: list[int] = field(default_factory=list)  # when faults began or ended
    log: Callable[[str], None] = print

    def one(self) -> None:
        """Does one fault, or nothing if it would be one too many."""
        cuts = [CUT_OFF, CUT_ONE_WAY, CUT_PAIR] if self.network.can_cut else []
        what = self.random.choice([KILL_GUEST, KILL_GUEST, KILL_PEER, KILL_PEER, STOP_GUEST, STOP_PEER, LEAVE, *cuts])
        if what in (KILL_GUEST, STOP_GUEST, LEAVE):
            self.to_guest(what)
        elif host := self.spare_host():
            self.to_host(what, host)

    def mend(self, everything: bool = False) -> None:
        """Undoes what is due."""
        due = [one for one in self.pending if everything or one.due <= now()]
        self.pending = [one for one in self.pending if one not in due]
        for one in due:
            one.undo()
            one.absence.end = now() + RETURN
            self.back[one.host] = now() + RETURN + int(VOTES_AGAIN * self.lease * SECOND)
            self.moments.append(now())

    def spare_host(self) -> Host | None:
        """A host that can be lost: together with those whose peers are no voters at the moment, it is a minority."""
        returning = {host for host, until in self.back.items() if now() < until}
        disturbed = ({one.host for one in self.pending} | returning) - {NO_HOST}
        if len(disturbed) + 1 > (len(self.hosts) - 1) // 2:
            return None
        return self.random.choice([host for host in self.hosts if host.number not in disturbed])

    def later(self, leases: float, who: str, undo: Undo, host: int = NO_HOST) -> None:
        absence = Absence(who, now())
        self.absences.append(absence)
        self.pending.append(Pending(now() + int(leases * self.lease * SECOND), undo, absence, host))

    # Guests.

    def to_guest(self, what: str) -> None:
        host = self.random.choice([host for host in self.hosts if host.guests])
        guest = self.random.choice(host.guests)
        self.said(what, guest.name)
        if what == KILL_GUEST:
            host.kill(guest)
            host.start_guest(self.guest)
        elif what == LEAVE:
            guest.send(signal.SIGTERM)
            host.guests.remove(guest)
            host.leaving.append(guest)
            host.start_guest(self.guest)
        else:
            guest.send(signal.SIGSTOP)
            self.later(self.random.uniform(0, 3), guest.name, continued(guest))

    # Hosts.

    def to_host(self, what: str, host: Host) -> None:
        self.said(what, f"host{host.number}")
        peer = host.peer
        if what == KILL_PEER and peer is not None:
            host.kill(peer)
            self.later(self.random.uniform(0, 2), guests_of(host), host.start_peer, host.number)
        elif what == STOP_PEER and peer is not None:
            peer.send(signal.SIGSTOP)
            self.later(self.random.uniform(0, 3), guests_of(host), continued(peer), host.number)
        else:
            self.cut(what, host)

    def cut(self, what: str, host: Host) -> None:
        me = host.number
        others = [other.number for other in self.hosts if other is not host]
        if what == CUT_PAIR:
            others = [self.random.choice(others)]
        pairs = [(me, other) for other in others]
        if what != CUT_ONE_WAY:
            pairs += [(other, me) for other in others]
        for src, dst in pairs:
            self.network.cut(src, dst)
        self.later(self.random.uniform(0.05, 2), guests_of(host), partial(self.heal, pairs), me)

    def heal(self, pairs: list[tuple[int, int]]) -> None:
        for src, dst in pairs:
            self.network.heal(src, dst)

    def said(self, what: str, who: str) -> None:
        self.done[what] += 1
        self.moments.append(now())
        self.log(f"{what}: {who}")


def guests_of(host: Host) -> str:
    return f"host{host.number}-"


def continued(running: Running) -> Undo:
    return lambda: running.send(signal.SIGCONT)
