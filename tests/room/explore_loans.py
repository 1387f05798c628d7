"""Every order of steps of a few users, the peer that lends to them, and the rest of its cluster (loans.py).

`python -m tests.room.explore_loans --help` explores a case from the command line.
"""

from __future__ import annotations

import argparse
import sys
from operator import itemgetter
from typing import Any

from fairgate.room.layout import (
    DIRTY,
    FENCE,
    FREE,
    LAST_FENCE,
    LENDER,
    NEXT_TICKET,
    OWNER,
    SLOT,
    STATE,
    TICKET,
    WAITING,
)  # fmt: skip
from tests.room import loans
from tests.room.loans import LATER, PAST, SEAT_WORDS, Case, Model, State
from tests.room.loans_properties import judge_calm, judge_change
from tests.room.plain import links
from tests.room.processes import Broken
from tests.room.search import Found, left_by_closed, ranked, ranked_rings, ranks, search

# Words that an earlier request has left in a seat, by its state. They have any value, so nothing may depend on them.
LEFT_OVER = {FREE: SEAT_WORDS[1:], WAITING: (SLOT, FENCE)}


def explore(case: Case, most: int = 10**8) -> Found:
    """See search.py."""
    model = Model(case, judge_change)
    return search(model, Packer(model), judge_calm, most)


class Packer:
    """States as short strings of bytes. States that differ only in what does not matter become the same.

    Only the order of tickets and of fences matters, so they are replaced by their ranks. A seat is named by its number,
    and an end of loans by the life of the peer.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.empty = list(model.start.table)
        self.seats = [0, *model.seats]
        self.numbers = {seat: number for number, seat in enumerate(self.seats)}
        self.ends = [0, PAST, *[LATER + life for life in range(1 + model.case.starts)]]
        self.end_numbers = {end: number for number, end in enumerate(self.ends)}
        self.words = itemgetter(*model.words)
        self.rests: list[Any] = []
        self.known: dict[Any, int] = {}

    def pack(self, state: State) -> bytes:
        m = list(state.table)
        peer = state.peer
        known = {*dict(peer.markers).values(), *[user.seat for user in state.processes]}
        for seat in self.model.seats:
            for at in LEFT_OVER.get(m[seat + STATE], ()):
                m[seat + at] = 0
            if links.is_away(m, seat) and seat not in known:
                m[seat + TICKET] = 1  # nobody looks at it any more
        taken = [seat for seat in self.model.seats if m[seat + STATE] != FREE]
        tickets = ranks(
            [0, 1, m[NEXT_TICKET], *[m[seat + TICKET] for seat in taken], *[user.ticket for user in state.processes],
             *peer.pending, *dict(peer.markers), *[stamp for _, stamp in state.line]], 0,
        )  # fmt: skip
        fences = ranks(
            [0, m[LAST_FENCE], *state.tops, *[fence for _, fence in state.slots], *dict(peer.lent).values(),
             *[user.fence for user in state.processes], *[m[seat + FENCE] for seat in taken]], 0,
        )  # fmt: skip
        for seat in taken:
            m[seat + TICKET], m[seat + FENCE] = tickets[m[seat + TICKET]], fences[m[seat + FENCE]]
        m[NEXT_TICKET], m[LAST_FENCE] = tickets[m[NEXT_TICKET]], fences[m[LAST_FENCE]]
        rest = (
            tuple([ranked(user, tickets, fences) for user in state.processes]),
            peer._replace(
                lent=tuple([(slot, fences[fence]) for slot, fence in peer.lent]),
                markers=tuple([(tickets[ticket], seat) for ticket, seat in peer.markers]),
                pending=tuple([tickets[ticket] for ticket in peer.pending]),
                to_ring=ranked_rings(peer.to_ring, tickets),
            ),
            tuple([(who, fences[fence]) for who, fence in state.slots]),
            tuple([(who, tickets[stamp]) for who, stamp in state.line]),
            tuple([fences[top] for top in state.tops]),
            state.budget,
        )
        number = self.known.get(rest)
        if number is None:
            number = self.known[rest] = len(self.rests)
            self.rests.append(rest)
        for at in self.model.untils:
            m[at] = self.end_numbers[m[at]]
        names = bytes([self.numbers[m[at]] for at in self.model.links])
        return names + bytes(self.words(m)) + number.to_bytes(4, "little")

    def unpack(self, key: bytes) -> State:
        m = self.empty.copy()
        end = len(self.model.links)
        for at, name in zip(self.model.links, key[:end], strict=True):
            m[at] = self.seats[name]
        for at, value in zip(self.model.words, key[end:-4], strict=True):
            m[at] = value
        for at in self.model.untils:
            m[at] = self.ends[m[at]]
        for seat in self.model.seats:
            for word in LEFT_OVER.get(m[seat + STATE], ()):
                m[seat + word] = 1
        processes, peer, slots, line, tops, budget = self.rests[int.from_bytes(key[-4:], "little")]
        left_by_closed(m, processes)
        return State(tuple(m), processes, peer, slots, line, tops, budget)


def show(model: Model, state: State) -> str:
    """For people."""
    m = state.table
    names = {"state": STATE, "ticket": TICKET, "slot": SLOT, "fence": FENCE, "lender": LENDER, "bell": OWNER}
    seats = [
        f"seat {seat}: {', '.join([f'{name} {m[seat + at]}' for name, at in names.items()])}"
        for seat in model.seats
        if m[seat + STATE] != FREE
    ]
    rest = (state.processes, state.peer, state.slots, state.line, [m[at] for at in model.untils], m[DIRTY])
    return "\n".join([*seats, *map(str, rest), ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.explore_loans", description="Explore one case.")
    parser.add_argument("users", type=int)
    parser.add_argument("k", type=int)
    for name in loans.Budget._fields:
        parser.add_argument(f"--{name}", type=int, default=getattr(Case, name))
    parser.add_argument("--entries", type=int, nargs="*", default=[], help="of each user")
    parser.add_argument("--permits", type=int, nargs="*", default=[], help="that each user asks for")
    parser.add_argument("--blind", action="store_true", help="the protocol does not know who waits elsewhere")
    given = vars(parser.parse_args())
    case = Case(**{**given, "entries": tuple(given["entries"]), "permits": tuple(given["permits"])})
    try:
        found = explore(case)
    except Broken as broken:
        print(*[show(Model(case, judge_change), state) for state in broken.path], broken, sep="\n")
        return 1
    print(f"{found.states:,} states, {found.calm:,} of them calm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
