"""The cases of agreed rosters that are explored (check/rosters.py): who there is, and what may happen to them."""

from dataclasses import asdict, dataclass
from typing import Any

Input = tuple[int, str]  # a node, and what happens there: a method of Views, or of `steered` (roster_nodes.py)


@dataclass(frozen=True)
class RosterCase:
    """Peers that agree on rosters, with bounds on everything that may happen to them. Times are in ticks."""

    inputs: tuple[Input, ...]  # each happens at most once, at any moment
    nodes: int = 4
    founders: int = 0  # the first so many; 0: all
    voters: tuple[int, ...] = (0, 1, 2)
    leader: int = 0  # at first
    before: tuple[tuple[int, str, tuple[int, ...]], ...] = ((3, "beat", ()),)  # and who has not heard of that yet
    ticks: int = 0
    slow: int = 0  # how often a clock misses a tick
    dups: int = 0  # messages that arrive twice
    lease: int = 1
    wait: int = 1  # a lease on the slowest clock, by the fastest
    last: int = 9  # votes about the successors of later versions are not delivered

    def describe(self) -> dict[str, Any]:
        return asdict(self)


EXCLUDE = (0, "exclude 3")
SERVE = (0, "serve")
BEAT = (3, "beat")
RIVAL = (1, "take_over")
ANOTHER = (1, "change")
CASES = {
    # Node 0 leads and excludes node 3, which has a lease or may get one.
    "a short lease": RosterCase((EXCLUDE, SERVE, BEAT), ticks=1),
    "one leader excludes": RosterCase((EXCLUDE, SERVE, BEAT), ticks=2),
    "two beats": RosterCase((EXCLUDE, SERVE, BEAT, BEAT), ticks=2),
    "a slow clock": RosterCase((EXCLUDE, SERVE, BEAT), ticks=3, slow=1, wait=2),
    "a slow clock, two beats": RosterCase((EXCLUDE, SERVE, BEAT, BEAT), ticks=3, slow=1, wait=2),
    "suspected by a majority": RosterCase(((1, "suspect 3"), (2, "suspect 3"), SERVE, BEAT), ticks=1),
    "a newcomer is excluded": RosterCase(((3, "join 0"), EXCLUDE, SERVE, BEAT), founders=3, ticks=2, before=()),
    "a newcomer is excluded, one message doubled": RosterCase(
        ((3, "join 0"), EXCLUDE, SERVE, BEAT), founders=3, ticks=2, before=(), dups=1
    ),
    # Node 1 takes over from node 0, which need not know.
    "a rival takes over": RosterCase((EXCLUDE, RIVAL, (1, "exclude 3"))),
    "a rival takes over, one message doubled": RosterCase((EXCLUDE, RIVAL, (1, "exclude 3")), dups=1),
    "a rival wants another": RosterCase((EXCLUDE, RIVAL, ANOTHER)),
    "a rival wants another, one message doubled": RosterCase((EXCLUDE, RIVAL, ANOTHER), dups=1),
    "two rivals": RosterCase((EXCLUDE, RIVAL, ANOTHER, (2, "take_over")), last=3),
    "a rival and a beat": RosterCase((EXCLUDE, RIVAL, SERVE, (1, "serve"), BEAT), ticks=1),
    "a rival goes on": RosterCase(((0, "change"), RIVAL, ANOTHER, ANOTHER), nodes=3, last=3, before=()),
    "a rival and a newcomer": RosterCase(((3, "join 2"), RIVAL, (1, "exclude 3")), founders=3, before=()),
    # The voters change.
    "one voter is left": RosterCase(((0, "voters 0"), EXCLUDE, SERVE, BEAT), ticks=2),
    "a voter was replaced": RosterCase((EXCLUDE, SERVE, BEAT), ticks=1, nodes=5, before=((0, "voters 0 1 4", (2, 3)),)),
    "a voter leaves": RosterCase(((2, "leave"), RIVAL, ANOTHER), nodes=3, before=()),
    "voters are added": RosterCase(
        ((1, "voters 0 1 2"), ANOTHER, (0, "take_over"), (0, "change")),
        nodes=3,
        voters=(1,),
        leader=1,
        last=3,
        before=(),
    ),
    # The start of a run that random walks took long to find: node 1 has been chosen version 2 by nodes 3 and 4, of
    # which node 0 is told in the middle of its own vote.
    "five voters, and a leader that is told": RosterCase(
        ((0, "change"),),
        nodes=5,
        voters=(0, 1, 2, 3, 4),
        before=((0, "change", (1, 3, 4)), (1, "take_over", (0, 2)), (1, "change", (0, 2))),
        last=3,
    ),
}
