"""The options of `fairgate sim` and their help texts."""

from typing import Annotated

from fairgate.cli.options import GATE, NETWORK, OUTPUT, RUN, option

LOAD = "Load"
DHT = "Protocols on a DHT (sigma, strawman, e2e, non_e2e)"

Nodes = Annotated[int, option(GATE, "Number of nodes that share the gate.", metavar="N")]
K = Annotated[
    int | None,
    option(
        GATE,
        "Number of nodes that may be inside at a time. Default: 3, or 1 if the protocol allows no more or runs on a"
        " DHT.",
        metavar="K",
        shown=False,
    ),
]
Channel = Annotated[
    bool,
    option(
        GATE,
        "Send messages over a reliable channel (numbered, acknowledged, resent), which makes up for lost and duplicated"
        " messages.",
        name="--channel",
    ),
]
Backups = Annotated[
    int | None,
    option(
        GATE,
        "Copy the state of each node to the next N nodes of a ring, which take over when it crashes (FK section 5). If"
        " all copies of a state are lost, a census of the surviving nodes rebuilds the gate. --overlay is the ring:"
        " full, chord, living-chord, or watched, on which every node learns of a crash at its own time.",
        metavar="N",
        shown=False,
    ),
]
NoCensus = Annotated[
    bool, option(GATE, "With --backups: do not rebuild a gate that has lost all copies of a state.", name="--no-census")
]
Workload = Annotated[
    str,
    option(
        LOAD,
        "When nodes make requests:\n\n"
        "closed: each node thinks, requests, enters, leaves, and thinks again.\n\n"
        "open: requests arrive at each node at random, even while its earlier ones still wait.\n\n"
        "rounds: --askers random nodes request at the same time; the next round begins when all of them have left.",
        metavar="NAME",
    ),
]
Rate = Annotated[
    float,
    option(
        LOAD,
        "Requests per second of each node. With --workload closed, a node thinks 1/R seconds on average.",
        metavar="R",
    ),
]
Cs = Annotated[float, option(LOAD, "Time that a node stays inside (in its critical section).", metavar="SECONDS")]
ExponentialCs = Annotated[
    bool,
    option(LOAD, "Draw each stay from an exponential distribution with mean --cs.", name="--exponential-cs"),
]
Requests = Annotated[
    int,
    option(
        LOAD,
        "Requests per node. With --workload rounds: the number of rounds; with --rounds too: the requests per round.",
        metavar="N",
    ),
]
Warmup = Annotated[int, option(LOAD, "Leave the first N requests of each node out of the wait times.", metavar="N")]
Seconds = Annotated[
    float,
    option(
        LOAD,
        "End the run after this much simulated time, even if requests still wait; 0: when all requests are done. With"
        " --workload open, --rate is then the rate of all nodes together, and each request goes to an idle node.",
        metavar="SECONDS",
    ),
]
WarmupSeconds = Annotated[float, option(LOAD, "Start measuring after this much of --seconds.", metavar="SECONDS")]
Rounds = Annotated[
    int,
    option(
        LOAD,
        "With --workload rounds: run N rounds that begin at fixed times (see --round-seconds). In each round --requests"
        " are made, every node that is inside leaves one gate with probability 1/2, and --churn nodes join or leave."
        " 0: a round begins when the one before is done.",
        metavar="N",
    ),
]
RoundSeconds = Annotated[
    float, option(LOAD, "Length of one of --rounds; 0: 100 times the longest latency.", metavar="SECONDS")
]
PerResource = Annotated[
    bool,
    option(
        LOAD,
        "With --rounds: make --requests per round for each resource, not for all resources together.",
        name="--per-resource",
    ),
]
AsPaper = Annotated[
    bool,
    option(
        LOAD,
        "For sigma, e2e, non_e2e and non_e2e_faults: the experiment of section VI of the End-to-End paper, without"
        " leases and second questions. A resource per 100 nodes, 10 replicas each, Pastry, 20 rounds of 20 requests per"
        " resource, and with --churn 400 requesters. Other options take precedence.",
        name="--as-paper",
    ),
]
Requesters = Annotated[
    int,
    option(
        LOAD,
        "With --rounds: only N nodes make requests, and --churn never replaces these; 0: all nodes do.",
        metavar="N",
    ),
]
Churn = Annotated[
    int,
    option(
        LOAD,
        "With --rounds: number of nodes that join or leave per round, half of them each (an even number).",
        metavar="N",
    ),
]
Resources = Annotated[int, option(DHT, "Number of gates; every node may request each of them.", metavar="R")]
Replicas = Annotated[
    int | None, option(DHT, "Replicas per gate, which vote on who enters. Default: 2k+1.", metavar="N", shown=False)
]
Quorum = Annotated[
    int | None,
    option(
        DHT,
        "Votes needed to enter. Default: more than N/(k+1) of the N replicas, so a majority for k = 1.",
        metavar="M",
        shown=False,
    ),
]
Responses = Annotated[
    str | None,
    option(
        DHT,
        "How a replica's answer returns to the client: directly, or routed hop by hop. Default: direct. Only for sigma"
        " and strawman.",
        metavar="direct|routed",
        shown=False,
    ),
]
OverlayName = Annotated[
    str | None,
    option(
        DHT,
        "Network that routes messages by key:\n\n"
        "full: every node knows all others (default).\n\n"
        "chord, pastry: a ring whose routing tables are always correct.\n\n"
        "living-chord, living-pastry: a ring that all nodes first join by messages, and that finds out by itself which"
        " nodes are gone. Requests, and the times of --faults and --seconds, start when the ring is complete. Nodes"
        " that --churn removes leave such a ring gracefully.",
        name="--overlay",
        metavar="NAME",
        shown=False,
    ),
]
Outsiders = Annotated[
    int,
    option(
        DHT,
        "The last N nodes are not members of the DHT: they make requests through a random member. Only for sigma and"
        " strawman.",
        metavar="N",
    ),
]
ReplicaLife = Annotated[
    float,
    option(DHT, "Mean time after which a replica loses its memory; 0: never.", metavar="SECONDS"),
]
Askers = Annotated[
    int | None,
    option(
        LOAD,
        "With --workload rounds: number of nodes that make a request in each round. Default: 20.",
        metavar="N",
        shown=False,
    ),
]
GiveUp = Annotated[
    str | None,
    option(
        LOAD,
        "Cancel requests that wait too long. 0.2:30 means that a fifth of the requests have limited patience, 30 s on"
        " average.",
        metavar="SHARE:SECONDS",
    ),
]
Latency = Annotated[
    str,
    option(
        NETWORK,
        "One-way delay of a message:\n\n"
        "0.1: always 0.1 seconds.\n\n"
        "uniform:0.02,0.18: random, between 0.02 and 0.18 seconds.\n\n"
        "pairs:uniform:0,0.2: random for each pair of nodes, and then the same for all their messages.\n\n"
        "wan: a synthetic wide area network; the delay depends on the distance between the nodes.\n\n"
        "FILE: a matrix of measured round-trip times.",
        metavar="MODEL",
    ),
]
Faults = Annotated[
    str,
    option(
        NETWORK,
        "Faults, separated by commas; times in seconds:\n\n"
        "crash:3@100: node 3 stops forever at 100 s.\n\n"
        "crash:*5@100+50: five random nodes stop, one every 50 s from 100 s on.\n\n"
        "crash:20%@600: a fifth of the nodes stop at 600 s.\n\n"
        "reset:3@100+10: node 3 loses its memory at 100 s and restarts 10 s later.\n\n"
        "loss:0.05, dup:0.01: this share of the messages is lost, or arrives twice.\n\n"
        "reorder:0.2: this share takes up to ten times as long.\n\n"
        "drift:0.01: every node has its own clock, and the fastest runs 1 % faster than the slowest.\n\n"
        "partition:0-4/5-9@60+30: the two groups cannot reach each other from 60 s on, for 30 s.\n\n"
        "detect:2, trust:1, doubt:0.1: failure detectors notice a crash after 2 s, trust each peer within 1 s of the"
        " start, and wrongly suspect this share of the peers at first.\n\n"
        "detect:1-5, distrust:0.7: each detector notices a crash after its own random delay; this share of the peers is"
        " never trusted.",
        metavar="FAULT,...",
    ),
]
Seed = Annotated[int, option(RUN, "Seed of all random choices: the same seed gives exactly the same run.", metavar="N")]
Trials = Annotated[
    int, option(RUN, "Number of runs, with the seeds SEED, SEED+1, ...; prints their means.", metavar="N")
]
Workers = Annotated[
    int | None,
    option(
        RUN,
        "Number of worker processes. They share the trials, or the gates of a single run with --rounds (not on a"
        " living- overlay). Default: one per processor. The results do not depend on it.",
        metavar="N",
        shown=False,
    ),
]
NoCheck = Annotated[
    bool,
    option(
        RUN,
        "Do not check the run for violations (more than k inside, a node that starves, a token lost or duplicated).",
        name="--no-check",
    ),
]
Marks = Annotated[
    bool,
    option(OUTPUT, "Count the remarkable events that the protocol notes, and print them.", name="--marks"),
]
Waits = Annotated[
    str | None,
    option(
        OUTPUT,
        "Write every wait after the warm-up to FILE: a table of seed, node, gate, asked and wait, as .csv, or as"
        " .parquet if pyarrow is installed.",
        metavar="FILE",
    ),
]
Loads = Annotated[
    str | None,
    option(
        OUTPUT,
        "Write how many messages each node received to FILE: a table of seed, node and messages, as .csv or .parquet.",
        metavar="FILE",
    ),
]
Usage = Annotated[
    str | None,
    option(
        OUTPUT,
        "Write every change of the number of permits in use to FILE: a table of seed, time and inside, as .csv or"
        " .parquet.",
        metavar="FILE",
    ),
]
Journal = Annotated[
    str | None,
    option(
        OUTPUT,
        "Write every step to FILE, for `fairgate replay`. The file gets large, and the run slower.",
        metavar="FILE",
    ),
]
