"""The options of `fairgate check` and their help texts."""

from typing import Annotated

from fairgate.cli.options import GATE, NETWORK, OUTPUT, option

RUN = "Search"

Nodes = Annotated[
    int, option(GATE, "Number of nodes. Keep it small: the number of states grows exponentially.", metavar="N")
]
K = Annotated[int, option(GATE, "Number of nodes that may be inside at a time.", metavar="K")]
Requests = Annotated[int, option(GATE, "Requests per node, one after the other.", metavar="N")]
Again = Annotated[
    bool, option(GATE, "A node that leaves may ask again in the same step, as guests of live gates do.", name="--again")
]
Cancels = Annotated[
    int, option(GATE, "Up to N requests may be cancelled, at any moment, while they wait or are inside.", metavar="N")
]
Network = Annotated[
    str,
    option(
        NETWORK,
        "What the network may do:\n\n"
        "any: deliver messages in any order.\n\n"
        "fifo: keep the order of messages from one node to another.\n\n"
        "lossy: any order, and lose up to --losses messages.\n\n"
        "dup: any order, and deliver up to --dups messages twice.",
        metavar="NAME",
    ),
]
Losses = Annotated[
    int | None,
    option(NETWORK, "With --network lossy: number of messages that may be lost. Default: 1.", metavar="N", shown=False),
]
Dups = Annotated[
    int | None,
    option(
        NETWORK, "With --network dup: number of messages that may arrive twice. Default: 1.", metavar="N", shown=False
    ),
]
Crashes = Annotated[
    int,
    option(
        NETWORK,
        "Up to N nodes may stop forever, at any moment; failure detectors tell the others at any later time.",
        metavar="N",
    ),
]
Resets = Annotated[int, option(NETWORK, "Up to N times, a node may lose its memory and restart.", metavar="N")]
Census = Annotated[
    bool,
    option(
        NETWORK,
        "Check the protocol as a live gate runs it: each crash or join brings a new view, and a census of its members"
        " rebuilds the gate.",
        name="--census",
    ),
]
Backups = Annotated[
    int | None,
    option(
        NETWORK,
        "Check the protocol with its state copied to the next N nodes of a ring, which take over after a crash (FK"
        " section 5). Set --ticks as well: messages that are lost in a crash are resent.",
        metavar="N",
        shown=False,
    ),
]
Joins = Annotated[
    int, option(NETWORK, "With --census: N nodes become members only when they make a request.", metavar="N")
]
Exclusions = Annotated[
    int,
    option(
        NETWORK,
        "With --census: up to N members are excluded although they live. They go on until they learn of it, or until"
        " their lease is over.",
        metavar="N",
    ),
]
Ticks = Annotated[
    int,
    option(
        GATE, "For protocols that use the clock (required there): number of seconds that each clock runs.", metavar="N"
    ),
]
Skew = Annotated[
    int,
    option(
        GATE,
        "Number of seconds by which a clock may be ahead of the slowest; 0: all clocks tick together.",
        metavar="N",
    ),
]
Rates = Annotated[
    str | None,
    option(
        GATE,
        "By how many percent the clock of each node is fast, such as 0,0,50. Default: all run at the same rate.",
        metavar="P,P,...",
        shown=False,
    ),
]
Depth = Annotated[
    int | None, option(RUN, "Explore only the first N steps of every run. Default: no limit.", metavar="N", shown=False)
]
Workers = Annotated[
    int,
    option(
        RUN,
        "Number of processes that explore. The result is the same; two are 1.3 to 1.7 times as fast on two cores.",
        metavar="W",
    ),
]
Symmetry = Annotated[
    bool,
    option(
        RUN,
        "Merge states that differ only in the names of nodes. Only for protocols that never compare the order of ids.",
        name="--symmetry",
    ),
]
Journal = Annotated[
    str | None,
    option(
        OUTPUT,
        "If there is a violation, write the steps that lead to it to FILE, for `fairgate replay`.",
        metavar="FILE",
    ),
]
Scenario = Annotated[
    str | None,
    option(
        OUTPUT,
        "If there is a violation, write the steps to FILE as a scenario (commands and their outcome, as in"
        " tests/scenarios).",
        metavar="FILE",
    ),
]
Mutants = Annotated[
    bool,
    option(
        RUN,
        "Mutation testing: delete each statement of the protocol in turn and list the deletions that no check notices."
        " It brings its own cases: only --json applies.",
        name="--mutants",
    ),
]
