"""Every state of small rooms, also with guests. The counts are pinned: a change of them must be explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairgate.room.layout import FENCE, TICKET
from tests.room import guests_properties
from tests.room.explore import Packer, explore
from tests.room.explore_guests import Packer as GuestPacker
from tests.room.explore_guests import explore as explore_guests
from tests.room.guests import Case as GuestCase
from tests.room.guests import Model as GuestModel
from tests.room.model import Case, Model
from tests.room.processes import IN, Broken, Process, Processes, with_process
from tests.room.properties import judge_calm, judge_change
from tests.room.search import Found, search

SMALL = {
    "two processes, two deaths": (Case(2, 1, deaths=2), (4_043, 2_359)),
    "a death": (Case(3, 1, deaths=1), (8_128, 2_353)),
    "a death, two slots": (Case(3, 2, deaths=1), (14_713, 4_381)),
    "a death, two slots, heads are not told": (Case(3, 2, deaths=1, throttled=True), (11_833, 4_267)),
    "cancels and leases": (Case(3, 1, cancels=2), (1_777, 616)),
    "a stop": (Case(3, 1, entries=(2, 2, 2), stops=1), (22_859, 7_205)),
    "several permits at once": (Case(3, 2, cancels=1, deaths=1, permits=(1, 2, 1)), (49_246, 12_403)),
    "k is changed": (Case(3, 1, resizes=2, capacity=3), (2_250, 855)),
    "k is changed, several permits at once": (Case(3, 2, resizes=2, permits=(1, 2, 1)), (746, 340)),
    "a room is closed": (Case(3, 1, closes=2), (7_138, 658)),
    "a room is closed and opened again": (Case(2, 1, closes=2, entries=(2, 2)), (2_029, 325)),
    "a room is closed, a lease ends": (Case(3, 1, closes=1, cancels=1), (10_111, 1_408)),
    "a room is closed, a permit is revoked": (Case(3, 1, closes=1, revokes=1), (14_099, 1_433)),
    "a room is closed, k is changed": (Case(3, 2, closes=1, resizes=1, capacity=2), (5_903, 1_202)),
    "a room is closed, several permits at once": (Case(3, 2, closes=2, permits=(1, 2, 1)), (8_274, 891)),
    "a room is closed, a stop": (Case(3, 1, closes=1, stops=1), (9_654, 2_280)),
    "a room is closed, a process forks": (Case(3, 1, closes=1, forks=1), (9_340, 619)),
    "a room is closed, a process forks, a death": (
        Case(2, 1, closes=1, forks=1, deaths=1, entries=(2, 1)),
        (24_830, 3_897),
    ),
    "a process forks, a death, a stop": (Case(2, 1, deaths=1, forks=1, stops=1), (4_127, 1_401)),
    "a permit is revoked": (Case(3, 2, revokes=2), (2_249, 863)),
    "four processes": (Case(4, 2, cancels=1), (42_397, 7_213)),
}
LARGE = {
    "two deaths": (Case(3, 1, deaths=2), (157_348, 33_238)),
    "two deaths and a cancel": (Case(3, 1, deaths=2, cancels=1), (758_020, 150_967)),
    "two deaths and a cancel, two slots": (Case(3, 2, deaths=2, cancels=1), (754_773, 163_431)),
    "two deaths, two slots, heads are not told": (Case(3, 2, deaths=2, throttled=True), (220_654, 61_657)),
    "a stop and a death": (Case(3, 1, stops=1, deaths=1), (36_462, 11_226)),
    "a stop and a death of one that comes again": (Case(3, 1, stops=1, deaths=1, entries=(2, 1, 1)), (137_097, 36_876)),
    "two stops and a death": (Case(3, 1, stops=2, deaths=1), (81_887, 25_049)),
    "a stop and a death, two slots": (Case(3, 2, stops=1, deaths=1), (56_725, 17_593)),
    "k is changed, a death": (Case(3, 1, resizes=1, capacity=2, deaths=1), (72_611, 13_520)),
    "k is changed by a fourth process, a death": (
        Case(4, 1, resizes=1, capacity=2, deaths=1, entries=(1, 1, 1, 0)),
        (209_426, 16_067),
    ),
    "k is changed twice, a death": (Case(3, 1, resizes=2, capacity=3, deaths=1), (366_201, 76_926)),
    "several permits, two deaths": (Case(3, 2, deaths=2, permits=(2, 1, 1)), (246_082, 51_951)),
    "several permits, k is changed, a death": (Case(3, 2, deaths=1, resizes=1, permits=(1, 2, 1)), (32_330, 8_638)),
    "a room is closed, a death": (Case(3, 1, closes=1, deaths=1), (89_326, 10_942)),
    "everything, two processes": (
        Case(2, 1, closes=1, deaths=1, revokes=1, resizes=1, capacity=2, cancels=1, forks=1),
        (120_132, 18_544),
    ),
    "a process forks, a death": (Case(3, 1, deaths=1, forks=1), (37_438, 4_621)),
    "three rooms are opened again": (Case(3, 1, closes=2, entries=(2, 2, 1)), (124_132, 7_127)),
    "a permit is revoked, a death": (Case(3, 2, deaths=1, revokes=1), (95_282, 22_430)),
    "four processes, a death": (Case(4, 1, deaths=1), (246_900, 29_724)),
    "four processes, a death, two slots": (Case(4, 2, deaths=1), (1_859_187, 86_379)),
    "four processes, a death, two slots, heads are not told": (Case(4, 2, deaths=1, throttled=True), (763_283, 78_479)),
}
SMALL_WITH_GUESTS = {
    "two guests": (GuestCase(2, 1), (400, 36)),
    "a death": (GuestCase(2, 1, deaths=1), (11_922, 536)),
    "a guest gives up": (GuestCase(2, 1, entries=(2, 1), cancels=1), (8_494, 213)),
    "a guest is stopped": (GuestCase(2, 1, stops=1), (2_812, 224)),
    "a lease lapses": (GuestCase(2, 1, lapses=1), (5_505, 117)),
    "a turn of the peer fails": (GuestCase(2, 1, fails=1), (876, 66)),
    "a turn of the peer fails, a guest is stopped": (GuestCase(2, 1, fails=1, stops=1), (6_424, 420)),
    "a turn of the peer fails, a guest gives up": (GuestCase(2, 1, fails=1, cancels=1), (5_954, 172)),
    "the peer dies, is stopped, or leaves": (GuestCase(2, 1, starts=2, halts=1, lapses=1), (39_586, 3_226)),
    "a guest's lease ends": (GuestCase(2, 1, leases=1), (1_879, 104)),
    "a permit is revoked": (GuestCase(2, 1, revokes=1), (1_750, 92)),
    "a room is closed": (GuestCase(2, 1, closes=1), (4_800, 104)),
    "a room is closed and opened again": (GuestCase(2, 1, entries=(2, 1), closes=1), (16_919, 262)),
    "a room is closed, a guest's lease ends": (GuestCase(2, 1, closes=1, leases=1), (17_731, 260)),
    "a room is closed, a permit is revoked": (GuestCase(2, 1, closes=1, revokes=1), (13_402, 236)),
    "a room is closed, a guest is stopped": (GuestCase(2, 1, closes=1, stops=1), (25_556, 976)),
    "a room is closed, a turn of the peer fails": (GuestCase(2, 1, closes=1, fails=1), (12_338, 194)),
}
LARGE_WITH_GUESTS = {
    "three guests": (GuestCase(3, 2), (80_075, 1_178)),
    "a death, two slots": (GuestCase(2, 2, deaths=1), (40_240, 1_054)),
    "a guest gives up, three guests": (GuestCase(3, 1, cancels=1), (138_089, 1_050)),
    "a guest is stopped, three guests": (GuestCase(3, 1, stops=1), (140_066, 2_971)),
    "the peer ends twice, and two leases": (GuestCase(2, 1, starts=2, halts=2, lapses=2), (306_240, 32_899)),
    "the peer ends, and a guest dies": (GuestCase(2, 1, starts=2, halts=1, lapses=1, deaths=1), (641_020, 49_331)),
    "the peer ends, a guest gives up, two slots": (
        GuestCase(2, 2, starts=2, halts=1, lapses=1, cancels=1),
        (294_921, 15_344),
    ),
    "a turn of the peer fails, a guest dies": (GuestCase(2, 1, fails=1, deaths=1), (32_440, 952)),
    "one gives up, one dies": (GuestCase(2, 1, entries=(2, 1), cancels=1, deaths=1), (218_978, 3_248)),
    "a room is closed, a lease lapses": (GuestCase(2, 1, closes=1, lapses=1), (51_571, 283)),
    "a room is closed, a death": (GuestCase(2, 1, closes=1, deaths=1), (95_168, 1_360)),
    "a room is closed, the peer ends": (GuestCase(2, 1, closes=1, starts=2, halts=1), (36_630, 1_622)),
    "a guest's lease ends, the peer ends": (GuestCase(2, 1, leases=1, starts=2, halts=1), (17_603, 1_897)),
    "a permit is revoked while a guest waits": (GuestCase(3, 1, entries=(1, 1, 0), revokes=1), (3_924, 104)),
    "a room is closed, a guest gives up": (GuestCase(2, 1, closes=1, cancels=1), (12_192, 195)),
    "a room is closed, a guest forks": (GuestCase(2, 1, closes=1, forks=1), (19_096, 206)),
    "a room is closed, two slots": (GuestCase(2, 2, closes=1), (10_648, 154)),
    "two rooms are closed": (GuestCase(2, 1, closes=2), (10_689, 122)),
    "two rooms are closed and opened again": (GuestCase(2, 1, closes=2, entries=(2, 1)), (46_161, 382)),
    "a room is closed, a permit is revoked, a guest's lease ends": (
        GuestCase(2, 1, closes=1, revokes=1, leases=1),
        (42_013, 576),
    ),
    "a room is closed, the peer ends, a lease lapses": (
        GuestCase(2, 1, closes=1, starts=2, halts=1, lapses=1),
        (313_378, 9_162),
    ),
    "one is stopped, one dies, one gives up": (GuestCase(2, 1, stops=1, deaths=1, cancels=1), (232_574, 6_459)),
}

Counts = tuple[int, int]  # all states, and the calm ones


def cases(rooms: dict[str, tuple[Case, Counts]], with_guests: dict[str, tuple[GuestCase, Counts]]) -> list[Any]:
    return [
        *[pytest.param(explore, case, counts, id=name) for name, (case, counts) in rooms.items()],
        *[pytest.param(explore_guests, *of, id=f"guests: {name}") for name, of in with_guests.items()],
    ]


def complete(explore: Callable[[Any], Found], case: Any, counts: Counts) -> None:
    found = explore(case)
    assert (found.states, found.calm) == counts


@pytest.mark.parametrize(("explore", "case", "counts"), cases(SMALL, SMALL_WITH_GUESTS))
def test_nothing_breaks(explore: Callable[[Any], Found], case: Any, counts: Counts) -> None:
    complete(explore, case, counts)


class ReadsLate(Processes):
    """A permit is what its seat says when its user gets it."""

    def returned(self, state: Any, i: int, process: Process) -> list[Any]:
        seat = process.seat
        late = process._replace(phase=IN, ticket=state.table[seat + TICKET], fence=state.table[seat + FENCE])
        return [with_process(state, i, late)]


class Late(ReadsLate, Model):
    pass


class LateGuests(ReadsLate, GuestModel):
    pass


def test_a_permit_that_is_read_from_its_seat_later_is_found() -> None:
    model = Late(Case(2, 1, closes=1), judge_change)
    with pytest.raises(Broken, match="two permits have one fence"):
        search(model, Packer(model), judge_calm, 10**6)


def test_a_guests_permit_that_is_read_from_its_seat_later_is_found() -> None:
    model = LateGuests(GuestCase(2, 1, closes=1), guests_properties.judge_change)
    with pytest.raises(Broken, match="a living process lost its seat"):  # its release ends another's request
        search(model, GuestPacker(model), guests_properties.judge_calm, 10**6)


@pytest.mark.stress
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("explore", "case", "counts"), cases(LARGE, LARGE_WITH_GUESTS))
def test_nothing_breaks_in_larger_rooms(explore: Callable[[Any], Found], case: Any, counts: Counts) -> None:
    complete(explore, case, counts)
