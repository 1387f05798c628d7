"""What the guests of a tortured cluster saw, and whether that is what a gate promises.

Every guest reports what it does, with the time on CLOCK_BOOTTIME, which all hosts of a torture share:

    asks        it asks for a permit
    enters      it was let in, with slot and fence
    uses        `permit.check()` succeeded. The time is from before that call: the permit was valid then, or later
    leaves      it releases its permit
    loses       `permit.check()` said that the permit was lost
    gives up    it has waited for as long as it wanted to

So nothing here depends on how long a report takes. If guest A uses slot 0 after guest B has entered it, with a
higher fence, then both were inside.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

ASKS, ENTERS, USES, LEAVES, LOSES, GIVES_UP = "asks", "enters", "uses", "leaves", "loses", "gives_up"
END = " ."  # of a report in the file of results: without it, its guest was killed meanwhile
SECOND = 1_000_000_000
NEVER = 1 << 62


@dataclass
class Visit:
    """One request of one guest. Times are ns; NEVER if it has not happened."""

    guest: str
    asked: int
    entered: int = NEVER
    slot: int = -1
    fence: int = -1
    used: int = 0  # when it last used its permit, 0 if never
    over: int = NEVER  # when it left, lost its permit, gave up or was killed
    lost: bool = False


@dataclass(frozen=True)
class Gap:
    """A time in which a slot was free although somebody was waiting."""

    begin: int
    end: int

    @property
    def seconds(self) -> float:
        return (self.end - self.begin) / SECOND


@dataclass
class History:
    visits: list[Visit] = field(default_factory=list)
    current: dict[str, Visit] = field(default_factory=dict)  # by guest

    def told(self, line: str) -> None:
        """Adds one report: GUEST WHAT TIME [SLOT FENCE]."""
        guest, what, when, *more = line.split()
        time = int(when)
        if what == ASKS:
            self.end(guest, time)
            self.current[guest] = Visit(guest, time)
            self.visits.append(self.current[guest])
            return
        visit = self.current[guest]
        if what == ENTERS:
            visit.entered, visit.slot, visit.fence = time, int(more[0]), int(more[1])
        elif what == USES:
            visit.used = time
        else:
            visit.lost = what == LOSES
            self.end(guest, time)

    def end(self, guest: str, time: int) -> None:
        """The guest leaves, gives up or dies."""
        visit = self.current.pop(guest, None)
        if visit is not None:
            visit.over = min(visit.over, time)

    def entries(self) -> list[Visit]:
        return sorted([visit for visit in self.visits if visit.entered != NEVER], key=lambda visit: visit.entered)

    def waits(self, guest: str, now: int) -> bool:
        return any(
            visit.guest == guest and visit.asked <= now < min(visit.entered, visit.over) for visit in self.visits
        )


def violations(history: History, k: int) -> list[str]:
    """What a gate with k slots must never do."""
    return [*shared_slots(history), *falling_fences(history), *too_many(history, k)]


def by_slot(history: History) -> dict[int, list[Visit]]:
    slots: dict[int, list[Visit]] = {}
    for visit in history.entries():
        slots.setdefault(visit.slot, []).append(visit)
    return slots


def shared_slots(history: History) -> Iterator[str]:
    for slot, visits in by_slot(history).items():
        last: Visit | None = None  # the earlier visit that used its permit last
        for visit in visits:
            if last is not None and last.used > visit.entered:
                late = (last.used - visit.entered) / SECOND
                yield f"{last.guest} used slot {slot} {late:.3f} s after {visit.guest} had entered it"
            if last is None or visit.used > last.used:
                last = visit


def falling_fences(history: History) -> Iterator[str]:
    for slot, visits in by_slot(history).items():
        for before, after in pairwise(visits):
            if after.fence <= before.fence:
                yield f"slot {slot} was entered with fence {before.fence} and then with {after.fence}"


def too_many(history: History, k: int) -> Iterator[str]:
    """More than k, or a slot that does not exist. A guest was surely inside from when it entered to its last use."""
    for visit in history.entries():
        if not 0 <= visit.slot < k:
            yield f"{visit.guest} was in slot {visit.slot} of {k}"
    surely = [(visit.entered, visit.used) for visit in history.entries() if visit.used > visit.entered]
    for when, inside in counted(surely):
        if inside > k:
            yield f"{inside} guests were inside at {when}"


def counted(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """How many of these spans are open, after every change. At equal times, ends come first."""
    changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    open_now = 0
    for when, change in changes:
        open_now += change
        yield when, open_now


def gaps(history: History, k: int, begin: int, end: int, absences: Sequence["Absence"] = ()) -> list[Gap]:
    """When fewer than k were inside, although somebody was waiting who could be served, between these times."""
    inside = [*[(visit.entered, visit.over) for visit in history.entries()], *unreported(history, absences)]
    waiting = [
        span
        for visit in history.visits
        for span in without((visit.asked, min(visit.entered, visit.over)), visit.guest, absences)
    ]
    changes = sorted(
        {moment for span in (*inside, *waiting) for moment in span if begin <= moment <= end} | {begin, end}
    )
    holders, queue = Count(inside), Count(waiting)
    found: list[Gap] = []
    for now, then in pairwise(changes):
        if holders.at(now) < k and queue.at(now) > 0:
            if found and found[-1].end == now:
                found[-1] = Gap(found[-1].begin, then)
            else:
                found.append(Gap(now, then))
    return found


def unreported(history: History, absences: Iterable["Absence"]) -> list[tuple[int, int]]:
    """When guests that were stopped had permits, as far as the fences show.

    A guest that is stopped just as it is let in keeps its slot and says nothing. Then its fence is missing between
    those of the entries before and after it."""
    entries: dict[int, list[Visit]] = {}
    for visit in sorted(history.entries(), key=lambda visit: visit.fence):
        entries.setdefault(visit.slot, []).append(visit)
    missing = [
        (before.over, after.entered)
        for slot in entries.values()
        for before, after in pairwise(slot)
        if after.fence == before.fence + 2
    ]
    return [
        (begin, min(end, absence.end))
        for begin, end in missing
        for absence in absences
        if absence.begin < end and begin < absence.end and history.waits(absence.who, absence.begin)
    ]


@dataclass
class Absence:
    """A time in which a guest, or every guest of a host, could not be served: it was stopped, or its peer was away."""

    who: str  # the beginning of their names
    begin: int
    end: int = NEVER


def without(span: tuple[int, int], guest: str, absences: Iterable[Absence]) -> list[tuple[int, int]]:
    """What is left of this span of a guest."""
    left = [span]
    for absence in absences:
        if guest.startswith(absence.who):
            cut = [((begin, min(end, absence.begin)), (max(begin, absence.end), end)) for begin, end in left]
            left = [part for parts in cut for part in parts if part[0] < part[1]]
    return left


class Count:
    """How many spans are open at rising times."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self.steps = list(counted(spans))
        self.next = 0
        self.value = 0

    def at(self, time: int) -> int:
        while self.next < len(self.steps) and self.steps[self.next][0] <= time:
            self.value = self.steps[self.next][1]
            self.next += 1
        return self.value


def overtakes(history: History) -> int:
    """How often somebody entered before somebody else who had asked earlier."""
    total = 0
    entries = history.entries()
    for place, visit in enumerate(entries):
        for earlier in reversed(entries[:place]):
            if earlier.entered < visit.asked:
                break
            total += earlier.asked > visit.asked
    return total
