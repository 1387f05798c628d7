"""Every order of steps of a few processes at one room (model.py), with a check of every state (properties.py).

`python -m tests.room.explore --help` explores a case from the command line.
"""

from __future__ import annotations

import argparse
import sys
from array import array
from operator import itemgetter

from fairgate.room.layout import DIRTY, FENCE, FREE, LAST_FENCE, NEXT_TICKET, SLOT, STATE, TICKET, WAITING
from tests.room.model import SEAT_WORDS, Budget, Case, Model, State
from tests.room.plain import links
from tests.room.processes import Broken, Process
from tests.room.properties import judge_calm, judge_change
from tests.room.search import Found, left_by_closed, ranked, ranks, search

# Words that an earlier request has left in a seat, by its state. They have any value, so nothing may depend on them.
LEFT_OVER = {FREE: SEAT_WORDS[1:], WAITING: (SLOT, FENCE)}


def explore(case: Case, most: int = 10**8) -> Found:
    """See search.py."""
    model = Model(case, judge_change)
    return search(model, Packer(model), judge_calm, most)


class Packer:
    """States as short strings of bytes. States that differ only in what does not matter become the same.

    Tickets and fences are replaced by their ranks, because only their order matters. A seat is named by its number.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.empty = list(model.start.table)
        self.numbers = {0: 0} | {seat: number for number, seat in enumerate(links.all_seats(self.empty), 1)}
        self.seats = [0, *links.all_seats(self.empty)]
        self.words = itemgetter(*model.words)
        self.links = itemgetter(*model.links)
        self.processes: list[Process] = []
        self.known: dict[Process, int] = {}

    def pack(self, state: State) -> bytes:
        m = list(state.table)
        for seat in self.model.seats:
            for at in LEFT_OVER.get(m[seat + STATE], ()):
                m[seat + at] = 0
        taken = [seat for seat in self.model.seats if m[seat + STATE] != FREE]
        tickets = ranks((m[seat + TICKET] for seat in taken), 1)
        noted = [process.fence for process in state.processes]
        fences = ranks([0, m[LAST_FENCE], state.top, *noted, *[m[seat + FENCE] for seat in taken]], 0)
        for seat in taken:
            m[seat + TICKET] = tickets[m[seat + TICKET]]
            m[seat + FENCE] = fences[m[seat + FENCE]]
        m[NEXT_TICKET] = 1 + len([ticket for ticket in tickets if ticket < m[NEXT_TICKET]])
        m[LAST_FENCE] = fences[m[LAST_FENCE]]
        processes = array("I", [self.number(process, tickets, fences) for process in state.processes])
        links = bytes(map(self.numbers.__getitem__, self.links(m)))
        return bytes((fences[state.top], *state.budget)) + links + bytes(self.words(m)) + processes.tobytes()

    def number(self, process: Process, tickets: dict[int, int], fences: dict[int, int]) -> int:
        """Which of the processes that were met so far it is."""
        process = ranked(process, tickets, fences)
        number = self.known.get(process)
        if number is None:
            number = self.known[process] = len(self.processes)
            self.processes.append(process)
        return number

    def unpack(self, key: bytes) -> State:
        m = self.empty.copy()
        begin = 1 + len(Budget._fields)
        top, budget = key[0], Budget(*key[1:begin])
        end = begin + len(self.model.links)
        for at, number in zip(self.model.links, key[begin:end], strict=True):
            m[at] = self.seats[number]
        begin, end = end, end + len(self.model.words)
        for at, value in zip(self.model.words, key[begin:end], strict=True):
            m[at] = value
        for seat in self.model.seats:
            for word in LEFT_OVER.get(m[seat + STATE], ()):
                m[seat + word] = 1
        numbers = array("I")
        numbers.frombytes(key[end:])
        processes = [self.processes[number] for number in numbers]
        left_by_closed(m, processes)
        return State(tuple(m), tuple(processes), budget, top)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.explore", description="Explore one case of a room.")
    parser.add_argument("processes", type=int)
    parser.add_argument("k", type=int)
    for name in ("deaths", "cancels", "stops", "resizes", "revokes", "closes", "forks", "capacity"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--entries", type=int, nargs="*", default=[], help="of each process")
    parser.add_argument("--permits", type=int, nargs="*", default=[], help="that each process asks for")
    parser.add_argument("--throttled", action="store_true", help="new heads are not told of their duties")
    given = vars(parser.parse_args())
    try:
        found = explore(Case(**{**given, "permits": tuple(given["permits"]), "entries": tuple(given["entries"])}))
    except Broken as broken:
        print(broken, *[(state.table[DIRTY], state.processes) for state in broken.path], sep="\n")
        return 1
    print(f"{found.states:,} states, {found.calm:,} of them calm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
