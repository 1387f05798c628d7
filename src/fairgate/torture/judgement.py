"""Whether a tortured cluster has kept its promises, judged by what its guests saw (history.py).

A slot may be free although somebody is waiting, but not for long. How long depends on what happened before. The slots
of a peer that died, was stopped or was cut off are free when its lease is over. If only some peers cannot reach it, the
others go on renewing its lease until they have heard the complaints. Everything else, such as the death of a guest,
delays nobody by more than half a second. So every fault excuses free slots for a time of its own (`Fault.seconds`), and
a free slot without an excuse is a broken promise.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fairgate.torture.history import NEVER, SECOND, Absence, Gap, History, Visit, gaps, overtakes, violations

SHORT = 0.5  # seconds: how long a slot may be free if nothing happened to a peer
MARGIN = 1.0  # seconds that an exclusion may take beyond the lease
COMPLAINTS = 0.75  # leases: a peer that only some cannot reach is excluded later, and has its lease until then
DRIFT = 0.01  # the stated drift of a cluster, unless it was created with another one


@dataclass(frozen=True)
class Fault:
    """Something that was done to a process or to the network, or was undone."""

    what: str
    who: str
    at: int
    seconds: float  # after which all slots must be in use again

    @property
    def until(self) -> int:
        return self.at + int(self.seconds * SECOND)


@dataclass(frozen=True)
class Calm:
    """The time after the faults, and the guests that live through it."""

    begin: int
    guests: frozenset[str]


@dataclass
class Verdict:
    wrong: list[str]
    faults: Counter[str]
    entries: int
    lost: int
    given_up: int
    overtakes: int
    longest: float  # seconds in which a slot was free although somebody was waiting
    longest_excused: float  # the same, after something happened to a peer
    folder: Path  # with the logs, if something was wrong

    def figures(self) -> dict[str, float]:
        return {
            "entries": self.entries,
            "permits_lost": self.lost,
            "requests_given_up": self.given_up,
            "overtakes_per_entry": self.overtakes / max(self.entries, 1),
            "longest_time_with_a_free_slot_after_a_fault_of_a_peer_s": self.longest_excused,
            "longest_time_with_a_free_slot_otherwise_s": self.longest,
        }


@dataclass
class Judge:
    history: History
    k: int
    began: int
    over: int
    faults: Sequence[Fault]
    absences: Sequence[Absence]

    def verdict(self, done: Counter[str], calm: Calm, folder: Path) -> Verdict:
        history = self.history
        found = gaps(history, self.k, self.began, self.over, self.absences)
        large = [fault for fault in self.faults if fault.seconds > SHORT]
        plain = [rest for gap in found for rest in outside(gap, large)]
        wrong = [
            *violations(history, self.k),
            *[self.describe(late) for gap in found for late in outside(gap, [*self.faults, usual(gap)])],
            *unserved(history.entries(), self.k, calm),
        ]
        return Verdict(
            wrong, done, len(history.entries()),
            sum(visit.lost for visit in history.visits),
            sum(visit.entered == NEVER and visit.over != NEVER for visit in history.visits),
            overtakes(history),
            longest(between(plain, self.faults)),
            longest(between(found, large)), folder,
        )  # fmt: skip

    def describe(self, late: Gap) -> str:
        begin = (late.begin - self.began) / SECOND
        found = f"somebody was waiting at {begin:.2f} s, and a slot stayed free for another {late.seconds:.2f} s"
        before = [fault for fault in self.faults if fault.at <= late.begin]
        if not before:
            return found
        last = max(before, key=lambda fault: fault.at)
        return f"{found}; {(late.begin - last.at) / SECOND:.2f} s before that: {last.what} ({last.who})"


def usual(gap: Gap) -> Fault:
    """A slot may always be free for a moment."""
    return Fault("", "", gap.begin, SHORT)


def outside(gap: Gap, faults: Iterable[Fault]) -> list[Gap]:
    """The parts of a gap that no fault excuses."""
    rest: list[Gap] = []
    begin = gap.begin
    for fault in sorted(faults, key=lambda fault: fault.at):
        if fault.until > begin and fault.at < gap.end:
            if fault.at > begin:
                rest.append(Gap(begin, fault.at))
            begin = fault.until
    return [*rest, Gap(begin, gap.end)] if begin < gap.end else rest


def between(gaps: Iterable[Gap], faults: Sequence[Fault]) -> list[Gap]:
    """The gaps, divided by the faults within them: the tenth crash may come during the ninth."""
    divided = []
    for gap in gaps:
        times = sorted([fault.at for fault in faults if gap.begin < fault.at < gap.end])
        divided += [Gap(begin, end) for begin, end in pairwise([gap.begin, *times, gap.end])]
    return divided


def longest(gaps: Iterable[Gap]) -> float:
    return max([gap.seconds for gap in gaps], default=0.0)


def unserved(entries: Sequence[Visit], k: int, calm: Calm) -> Iterator[str]:
    """Guests that got nothing and slots that were not used in the calm."""
    last = [visit for visit in entries if visit.entered >= calm.begin]
    for name in sorted(calm.guests - {visit.guest for visit in last}):
        yield f"{name} was not served once the faults had stopped"
    for slot in sorted(set(range(k)) - {visit.slot for visit in last}):
        yield f"slot {slot} was lost: nobody entered it once the faults had stopped"
