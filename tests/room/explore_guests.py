"""Every order of steps of a few guests, their peer and its cluster (guests.py), with a check of every state.

`python -m tests.room.explore_guests --help` explores a case from the command line.
"""

from __future__ import annotations

import argparse
import sys
from operator import itemgetter
from typing import Any

from fairgate.room.layout import (
    CLUSTER_SLOT,
    DEADLINE,
    FENCE,
    FREE,
    LAST_FENCE,
    NEXT_TICKET,
    PERMITS,
    SLOT,
    STATE,
    TICKET,
    WAITING,
)
from tests.room import guests
from tests.room.guests import SEAT_WORDS, Case, Model, Peer, State
from tests.room.guests_properties import judge_calm, judge_change
from tests.room.processes import Broken
from tests.room.search import Found, left_by_closed, ranked, ranked_rings, ranks, search

# Words that an earlier request has left in a seat, by its state.
LEFT_OVER = {
    FREE: SEAT_WORDS[1:],
    WAITING: (SLOT, FENCE, CLUSTER_SLOT, DEADLINE),
}
Key = tuple[Any, ...]


def explore(case: Case, most: int = 10**8) -> Found:
    """See search.py."""
    model = Model(case, judge_change)
    return search(model, Packer(model), judge_calm, most)


class Packer:
    """States in a form in which those that differ only in what does not matter are the same: see explore.Packer."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.empty = list(model.start.table)
        self.words = itemgetter(*model.words, *model.links)

    def pack(self, state: State) -> Key:
        m = list(state.table)
        for seat in self.model.seats:
            for at in LEFT_OVER.get(m[seat + STATE], ()):
                m[seat + at] = 0
        taken = [seat for seat in self.model.seats if m[seat + STATE] != FREE]
        peer = state.peer
        known = {m[seat + TICKET] for seat in taken} | tickets_of(peer)
        latest = max([ticket for ticket in known if ticket <= peer.latest], default=0)
        rank = ranks(known | {0}, 0)
        noted = [guest.fence for guest in state.processes]
        fences = ranks([0, *noted, *[fence for _, fence in state.slots], *[m[seat + FENCE] for seat in taken]], 0)
        for seat in taken:
            m[seat + TICKET], m[seat + FENCE] = rank[m[seat + TICKET]], fences[m[seat + FENCE]]
        m[NEXT_TICKET] = len(rank)
        people = [ranked(guest, rank, fences) for guest in state.processes]
        slots = tuple([(life, fences[fence]) for life, fence in state.slots])
        told = renamed_peer(peer._replace(latest=latest), rank)
        return (self.words(m), tuple(people), told, slots, len(fences), state.budget)

    def unpack(self, key: Key) -> State:
        words, people, peer, slots, fence, budget = key
        m = self.empty.copy()
        for at, value in zip((*self.model.words, *self.model.links), words, strict=True):
            m[at] = value
        for seat in self.model.seats:
            m[seat + PERMITS] = 1  # as for all requests in a cluster
            for word in LEFT_OVER.get(m[seat + STATE], ()):
                m[seat + word] = 1
        left_by_closed(m, people)
        m[LAST_FENCE] = fence
        return State(tuple(m), people, peer, slots, fence, budget)


def tickets_of(peer: Peer) -> set[int]:
    pairs = (*peer.new, *peer.asked, *peer.passed, *peer.inside, *peer.earlier, *peer.arrived, *peer.held)
    return {ticket for ticket, _ in pairs} | {*peer.pending, *peer.lost, *peer.ended}


def renamed_peer(peer: Peer, rank: dict[int, int]) -> Peer:
    def pairs(of: guests.Pairs) -> guests.Pairs:
        return tuple([(rank[ticket], other) for ticket, other in of])

    return peer._replace(
        latest=rank.get(peer.latest, 0),
        new=pairs(peer.new),
        asked=pairs(peer.asked),
        passed=pairs(peer.passed),
        inside=pairs(peer.inside),
        earlier=pairs(peer.earlier),
        owners=pairs(peer.owners),
        ended=tuple([rank[ticket] for ticket in peer.ended]),
        arrived=pairs(peer.arrived),
        held=pairs(peer.held),
        pending=tuple([rank[ticket] for ticket in peer.pending]),
        lost=tuple([rank[ticket] for ticket in peer.lost]),
        called=tuple(sorted({rank[ticket] for ticket in peer.called if ticket in rank})),
        to_ring=ranked_rings(peer.to_ring, rank),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.explore_guests", description="Explore one case.")
    parser.add_argument("guests", type=int)
    parser.add_argument("k", type=int)
    for name, default in (
        ("deaths", 0),
        ("cancels", 0),
        ("stops", 0),
        ("starts", 1),
        ("halts", 0),
        ("lapses", 0),
        ("fails", 0),
        ("revokes", 0),
        ("closes", 0),
        ("forks", 0),
        ("leases", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--entries", type=int, nargs="*", default=[], help="of each guest")
    given = vars(parser.parse_args())
    try:
        found = explore(Case(**{**given, "entries": tuple(given["entries"])}))
    except Broken as broken:
        for state in broken.path:
            records = [state.table[seat : seat + 8] for seat in Model(Case(**given), judge_change).seats]
            print(*records, *state.processes, state.peer, state.slots, "", sep="\n")
        print(broken)
        return 1
    print(f"{found.states:,} states, {found.calm:,} of them calm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
