"""The options of `fairgate sim`, each with the sentence that explains it."""

from typing import Annotated

from fairgate.cli.options import GATE, NETWORK, OUTPUT, RUN, option

LOAD = "The load"
DHT = "On a DHT (sigma, strawman, e2e, non_e2e)"

Nodes = Annotated[int, option(GATE, "How many nodes want to go through the gate, as in --nodes 1000.", metavar="N")]
K = Annotated[
    int | None,
    option(
        GATE,
        "How many may be inside at a time: 3 if left out, or 1 for a protocol that allows no more or stands on a DHT.",
        metavar="K",
        shown=False,
    ),
]
Channel = Annotated[
    bool,
    option(
        GATE,
        "Carry the protocol by numbered, acknowledged, resent messages, so that a lossy network does not stop it.",
        name="--channel",
    ),
]
Workload = Annotated[
    str,
    option(
        LOAD,
        "Who asks when. closed: each node thinks, asks, enters, leaves, thinks. open: requests come to each node"
        " whatever became of the earlier ones. rounds: some nodes ask at once, and again when all are through.",
        metavar="closed|open|rounds",
    ),
]
Rate = Annotated[
    float, option(LOAD, "Requests a second of each node: it thinks 1/rate seconds, on average.", metavar="R")
]
Cs = Annotated[float, option(LOAD, "Seconds that a node stays inside, as in --cs 0.5.", metavar="SECONDS")]
ExponentialCs = Annotated[
    bool,
    option(LOAD, "Draw each stay inside from an exponential distribution with mean --cs.", name="--exponential-cs"),
]
Requests = Annotated[
    int,
    option(
        LOAD,
        "Requests that each node makes; in rounds the number of rounds, or with --rounds the requests of a round.",
        metavar="N",
    ),
]
Warmup = Annotated[
    int, option(LOAD, "Leave the first so many requests of each node out of the waits, as in --warmup 20.", metavar="N")
]
Seconds = Annotated[
    float,
    option(
        LOAD,
        "End after so many seconds, whoever waits then. With --workload open, --rate is then of all nodes together and"
        " each request comes to a node that is idle.",
        metavar="SECONDS",
    ),
]
WarmupSeconds = Annotated[
    float, option(LOAD, "Leave the first so many of --seconds out of what is measured.", metavar="SECONDS")
]
Rounds = Annotated[
    int,
    option(
        LOAD,
        "With --workload rounds: so many rounds that begin at set times. In each, --requests are made, a node that is"
        " inside leaves with a chance of one half, and --churn nodes come or go.",
        metavar="N",
    ),
]
RoundSeconds = Annotated[
    float, option(LOAD, "How long one of --rounds is; 100 times the longest latency if left out.", metavar="SECONDS")
]
PerResource = Annotated[
    bool, option(LOAD, "Make --requests in each of --rounds for each resource, not in all.", name="--per-resource")
]
Requesters = Annotated[
    int, option(LOAD, "Only so many nodes ask in --rounds, and those are never churned; 0: all ask.", metavar="N")
]
Churn = Annotated[int, option(LOAD, "Nodes that come or go in each of --rounds, half of each.", metavar="N")]
Resources = Annotated[int, option(DHT, "So many gates at once; every node may ask for each of them.", metavar="R")]
Replicas = Annotated[
    int | None, option(DHT, "Replicas of each gate, whose votes let one in.", metavar="N", shown=False)
]
Quorum = Annotated[
    int | None,
    option(DHT, "Votes that are needed: a majority of the replicas if left out.", metavar="M", shown=False),
]
Responses = Annotated[
    str | None,
    option(
        DHT,
        "How a replica's answer comes back to its client: straight, or hop by hop as it came.",
        metavar="direct|routed",
        shown=False,
    ),
]
OverlayName = Annotated[
    str | None,
    option(
        DHT,
        "What routes the messages: full (everybody knows everybody); chord or pastry at rest; or living-chord and"
        " living-pastry, rings that all nodes join by messages first, and that find out who is gone. The work, and the"
        " times of --faults and --seconds, begin when such a ring is whole; who goes by --churn leaves in good order.",
        name="--overlay",
        metavar="full|chord|pastry|living-chord|living-pastry",
        shown=False,
    ),
]
ReplicaLife = Annotated[
    float,
    option(DHT, "Every replica loses its memory after so many seconds on average; 0: never.", metavar="SECONDS"),
]
Askers = Annotated[
    int | None,
    option(LOAD, "How many nodes ask in each round of --workload rounds: 20 if left out.", metavar="N", shown=False),
]
GiveUp = Annotated[
    str | None,
    option(
        LOAD,
        "Let this share of the requests be cancelled if they wait too long: 0.2:30 is a fifth, after 30 s on average.",
        metavar="SHARE:SECONDS",
    ),
]
Latency = Annotated[
    str,
    option(
        NETWORK,
        "How long a message takes: 1 (seconds), uniform:0.02,0.18, wan (places spread over a plane), or a file with a"
        " matrix of round trips.",
        metavar="TIME|wan|FILE",
    ),
]
Faults = Annotated[
    str,
    option(
        NETWORK,
        "What goes wrong, separated by commas: crash:3@100 (node 3, at 100 s), crash:*5@100+50 (five, one every 50 s),"
        " reset:3@100+10, loss:0.05, dup:0.01, reorder:0.2, partition:0-4/5-9@60+30, detect:2, trust:1, doubt:0.1.",
        metavar="TEXT",
    ),
]
Seed = Annotated[int, option(RUN, "The same seed gives the same run, event by event.", metavar="N")]
Trials = Annotated[int, option(RUN, "So many runs, with the seeds SEED, SEED+1, ... , and their means.", metavar="N")]
Workers = Annotated[
    int | None,
    option(
        RUN,
        "Processes that run trials, or of one trial with --rounds the gates on a settled ring: one a processor if left"
        " out. What comes out does not depend on it.",
        metavar="N",
        shown=False,
    ),
]
NoCheck = Annotated[
    bool,
    option(
        RUN, "Do not check that at most k are inside, that nobody starves, that tokens stay as many.", name="--no-check"
    ),
]
Journal = Annotated[
    str | None,
    option(OUTPUT, "Write every step to this file, for `fairgate replay`: long, and slower.", metavar="FILE"),
]
