"""The options of `fairgate check`, each with the sentence that explains it."""

from typing import Annotated

from fairgate.cli.options import GATE, NETWORK, OUTPUT, option

RUN = "The search"

Nodes = Annotated[int, option(GATE, "How many nodes there are: keep it small, states multiply.", metavar="N")]
K = Annotated[int, option(GATE, "How many may be inside at a time.", metavar="K")]
Requests = Annotated[int, option(GATE, "Requests that each node makes, one after the other.", metavar="N")]
Cancels = Annotated[int, option(GATE, "So many requests are cancelled, waiting or inside, at any moment.", metavar="N")]
Network = Annotated[
    str,
    option(
        NETWORK,
        "any: messages overtake each other. fifo: not those between the same two nodes. lossy, dup: as any, and some"
        " are lost, or come twice.",
        metavar="any|fifo|lossy|dup",
    ),
]
Losses = Annotated[
    int | None, option(NETWORK, "With --network lossy: so many are lost, 1 if left out.", metavar="N", shown=False)
]
Dups = Annotated[
    int | None, option(NETWORK, "With --network dup: so many come twice, 1 if left out.", metavar="N", shown=False)
]
Crashes = Annotated[
    int,
    option(
        NETWORK, "So many nodes stop for ever, at any moment; detectors tell the others some time later.", metavar="N"
    ),
]
Resets = Annotated[int, option(NETWORK, "So many times a node loses its memory and starts again.", metavar="N")]
Census = Annotated[
    bool,
    option(
        NETWORK, "As at a live gate: a crash or a newcomer makes a new view, and a census under it lets the gate go on."
    ),
]
Joins = Annotated[int, option(NETWORK, "With --census: so many nodes are no members before they ask.", metavar="N")]
Ticks = Annotated[
    int, option(GATE, "For protocols with a clock: how many seconds every clock goes on, as in --ticks 5.", metavar="N")
]
Skew = Annotated[
    int, option(GATE, "So many seconds a clock may be ahead of the slowest; 0: all go at once.", metavar="N")
]
Depth = Annotated[
    int | None, option(RUN, "Look at runs of so many steps only: all of them, if left out.", metavar="N", shown=False)
]
Workers = Annotated[
    int,
    option(
        RUN,
        "Processes that look at the states: what is found is the same. Two are 1.3 to 1.7 times as fast on two cores.",
        metavar="W",
    ),
]
Symmetry = Annotated[
    bool,
    option(RUN, "Take states for one that differ only in who is who; for protocols that never ask which id is larger."),
]
Journal = Annotated[
    str | None,
    option(OUTPUT, "Write the way to a violation to this file, for `fairgate replay`.", metavar="FILE"),
]
Scenario = Annotated[
    str | None,
    option(OUTPUT, "Write it to this file as commands and their outcome, as tests/scenarios has them.", metavar="FILE"),
]
Mutants = Annotated[
    bool, option(RUN, "Delete every statement of the protocol in turn, and say which deletions go unnoticed.")
]
