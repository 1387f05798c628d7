"""The faults of a torture: one after the other, at random, but never so many at once that no majority is left."""

import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from fairgate.torture.guest import GuestPlan, now
from fairgate.torture.history import SECOND, Absence
from fairgate.torture.host import Host, Running
from fairgate.torture.judgement import COMPLAINTS, DRIFT, MARGIN, SHORT, Fault
from fairgate.torture.network import Network

Undo = Callable[[], None]

KILL_GUEST, KILL_PEER, STOP_GUEST, STOP_PEER = "guests killed", "peers killed", "guests stopped", "peers stopped"
CUT_OFF, CUT_ONE_WAY, CUT_PAIR = "hosts cut off", "one-way cuts", "pairs cut"
LEAVE, RESTART_PEER = "guests that left", "peers restarted"
TO_GUESTS = (KILL_GUEST, KILL_GUEST, STOP_GUEST, LEAVE)
TO_PEERS = (KILL_PEER, KILL_PEER, STOP_PEER, RESTART_PEER)
CUTS = (CUT_OFF, CUT_ONE_WAY, CUT_PAIR)
UNDONE = "undone"
GUESTS_FIRST = 0.3  # the share of faults that go to guests even if a host can be lost
RETURN = 2 * SECOND  # how long a peer may take to be back
VOTES_AGAIN = 2  # leases after which a peer that was away has surely become a voter again


@dataclass
class Pending:
    """A fault that has to be undone."""

    due: int
    undo: Undo
    absences: list[Absence]
    hosts: tuple[int, ...]
    what: str


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
    all: list[Fault] = field(default_factory=list)
    log: Callable[[str], None] = print

    def cause_one(self) -> None:
        """Disturbs a host, if a majority of them stays undisturbed; otherwise, and sometimes anyway, a guest."""
        host = self.spare_host()
        if host is None or self.random.random() < GUESTS_FIRST:
            self.to_guest(self.random.choice(TO_GUESTS))
        else:
            kinds = self.random.choice([TO_PEERS, CUTS]) if self.network.can_cut else TO_PEERS
            self.to_host(self.random.choice(kinds), host)

    def mend(self, everything: bool = False) -> None:
        """Undoes what is due."""
        due = [one for one in self.pending if everything or one.due <= now()]
        self.pending = [one for one in self.pending if one not in due]
        for one in due:
            one.undo()
            for absence in one.absences:
                absence.end = now() + RETURN
            for host in one.hosts:
                self.back[host] = now() + RETURN + int(VOTES_AGAIN * self.lease * SECOND)
            self.all.append(Fault(f"{one.what}, {UNDONE}", one.absences[0].who, now(), SHORT))

    def disturbed(self) -> set[int]:
        """Hosts whose peers may be no voters at the moment."""
        returning = {host for host, until in self.back.items() if now() < until}
        return returning.union(*[one.hosts for one in self.pending])

    def can_lose(self, more: int) -> bool:
        """Whether as many further hosts, together with those that are disturbed, are a minority."""
        return len(self.disturbed()) + more <= (len(self.hosts) - 1) // 2

    def spare_host(self) -> Host | None:
        disturbed = self.disturbed()
        spare = [host for host in self.hosts if host.number not in disturbed]
        return self.random.choice(spare) if self.can_lose(1) else None

    def later(self, leases: float, what: str, undo: Undo, guests: str = "", hosts: Sequence[int] = ()) -> None:
        """Undo it then. Meanwhile this guest, or the guests of these hosts, may not be served."""
        absences = [Absence(who, now()) for who in ([guests] if guests else map(guests_of, hosts))]
        self.absences += absences
        self.pending.append(Pending(now() + int(leases * self.lease * SECOND), undo, absences, tuple(hosts), what))

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
            self.later(self.random.uniform(0, 3), what, continued(guest), guest.name)

    # Hosts.

    def to_host(self, what: str, host: Host) -> None:
        self.said(what, f"host{host.number}")
        peer = host.peer
        if what == KILL_PEER and peer is not None:
            host.kill(peer)
            self.later(self.random.uniform(0, 2), what, host.start_peer, hosts=[host.number])
        elif what == STOP_PEER and peer is not None:
            peer.send(signal.SIGSTOP)
            self.later(self.random.uniform(0, 3), what, continued(peer), hosts=[host.number])
        elif what == RESTART_PEER and peer is not None:
            peer.send(signal.SIGTERM)
            self.later(self.random.uniform(0, 2), what, partial(host.restart_peer, peer), hosts=[host.number])
        else:
            self.cut(what, host)

    def cut(self, what: str, host: Host) -> None:
        me, lost = host.number, [host.number]
        others = [other.number for other in self.hosts if other is not host]
        if what == CUT_PAIR:  # either of the two may be excluded
            some = others if self.can_lose(2) else sorted(self.disturbed() - {me})
            others = [self.random.choice(some)] if some else others  # small clusters: from all of them
            lost += others if some else []
        there, back = [(me, other) for other in others], [(other, me) for other in others]
        pairs = self.random.choice([there, back]) if what == CUT_ONE_WAY else there + back
        for src, dst in pairs:
            self.network.cut(src, dst)
        self.later(self.random.uniform(0.05, 2), what, partial(self.heal, pairs), hosts=lost)

    def heal(self, pairs: list[tuple[int, int]]) -> None:
        for src, dst in pairs:
            self.network.heal(src, dst)

    def said(self, what: str, who: str) -> None:
        self.done[what] += 1
        self.all.append(Fault(what, who, now(), self.allowed(what)))
        self.log(f"{what}: {who}")

    def allowed(self, what: str) -> float:
        """Seconds after which all slots must be in use again."""
        if what in TO_GUESTS:
            return SHORT
        leases = 1 + DRIFT + (COMPLAINTS if what in (CUT_PAIR, CUT_ONE_WAY) else 0)
        return leases * self.lease + MARGIN


def guests_of(host: int) -> str:
    return f"host{host}-"


def continued(running: Running) -> Undo:
    return lambda: running.send(signal.SIGCONT)
