"""Faults of a simulated run: how they are written, and how they are planned.

`--faults` takes a list of these, separated by commas; times are in seconds:

    crash:3@100            node 3 stops forever at 100 s
    crash:*5@100+50        five random nodes crash, one every 50 s from 100 s on
    crash:20%@600          a fifth of the nodes crash at the same moment
    reset:3@100+10         node 3 crashes at 100 s and returns 10 s later without its memory
    loss:0.05              this share of messages is lost
    dup:0.01               this share arrives twice
    reorder:0.2            this share takes up to ten times as long
    drift:0.01             every node has its own clock; the fastest runs this much faster than the slowest
    partition:0-4/5-9@60+30   no message passes between the groups from 60 s on, for 30 s
    detect:2  detect:1-5  trust:1  doubt:0.1  distrust:0.7   settings of the failure detectors (sim/detectors.py)
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from fairgate.core.clock import MILLION, Clock, drawn_clock
from fairgate.core.message import Message
from fairgate.core.units import NEVER, seconds_to_ns
from fairgate.errors import BadInput
from fairgate.sim.churn import come_back
from fairgate.sim.detectors import Detectors
from fairgate.sim.events import DELIVER
from fairgate.sim.ring_repair import RingRepair
from fairgate.sim.sampling import sample
from fairgate.sim.stream import Stream
from fairgate.sim.takeovers import Takeovers
from fairgate.sim.views import Views

if TYPE_CHECKING:
    from fairgate.sim.engine import Engine

NUMBER = r"\d+(?:\.\d+)?"
AT = rf"@(?P<at>{NUMBER})(?:\+(?P<then>{NUMBER}))?"
CRASH = re.compile(r"(?P<star>\*)?(?P<who>\d+)" + AT)
CRASH_SHARE = re.compile(rf"(?P<share>{NUMBER})%@(?P<at>{NUMBER})")
RESET = re.compile(r"(?P<who>\d+)" + AT)
PARTITION = re.compile(r"(?P<a>[\d\-.]+)/(?P<b>[\d\-.]+)" + AT)
DETECT = re.compile(rf"(?P<low>{NUMBER})(?:-(?P<high>{NUMBER}))?")
STRETCH = 10  # a reordered message takes up to this many times as long


@dataclass
class Faults:
    crashes: list[tuple[int, int]] = field(default_factory=list)  # (node, time)
    random_crashes: list[tuple[int, int, int]] = field(default_factory=list)  # (count, first time, interval)
    resets: list[tuple[int, int, int]] = field(default_factory=list)  # (node, time, duration)
    partitions: list[tuple[frozenset[int], frozenset[int], int, int]] = field(default_factory=list)  # (a, b, from, to)
    loss: float = 0.0
    dup: float = 0.0
    reorder: float = 0.0
    drift: float = 0.0
    detect: tuple[int, int] = (2_000_000_000, 2_000_000_000)  # shortest and longest delay
    trust: int = 1_000_000_000
    doubt: float = 0.0
    distrust: float = 0.0

    def kinds(self) -> list[str]:
        """The kinds of faults that a protocol must survive to keep working in this run."""
        found = {
            "crash": bool(self.crashes or self.random_crashes),
            "reset": bool(self.resets),
            "loss": self.loss > 0 or bool(self.partitions),
            "duplication": self.dup > 0,
        }
        return [kind for kind, present in found.items() if present]

    def of_network(self) -> bool:
        return bool(self.loss or self.dup or self.reorder or self.partitions)


def parse_faults(text: str, nodes: int) -> Faults:
    """Parse the value of `--faults` for a run with this many nodes; raises BadInput if it cannot be read."""
    faults = Faults()
    for one in filter(None, text.replace(" ", "").split(",")):
        kind, _, rest = one.partition(":")
        if kind in PARSERS:
            PARSERS[kind](faults, rest, nodes)
        elif kind in SHARES:
            setattr(faults, kind, share(kind, rest))
        elif kind in DURATIONS:
            setattr(faults, kind, duration(kind, rest))
        else:
            known = ", ".join([*PARSERS, *SHARES, *DURATIONS])
            raise BadInput(f"unknown fault {kind!r}: choose from {known}")
    return faults


def parse_crash(faults: Faults, text: str, nodes: int) -> None:
    if "%" in text:
        parse_crash_share(faults, text, nodes)
        return
    found = matched(CRASH, text, "crash:3@100, crash:*5@100+50 or crash:20%@600")
    many, at = int(found["who"]), seconds_to_ns(float(found["at"]))
    if not found["star"] and not found["then"]:
        faults.crashes.append((member(many, nodes), at))
    elif not found["star"]:
        raise BadInput(
            f"a crash is permanent: write crash:{many}@{found['at']}, or reset:{text} for a node that comes back"
        )
    elif many < nodes:
        faults.random_crashes.append((many, at, seconds_to_ns(float(found["then"] or 0))))
    else:
        raise BadInput(f"crash:*{many} is too many for {nodes} nodes: at most {nodes - 1} can crash")


def parse_crash_share(faults: Faults, text: str, nodes: int) -> None:
    found = matched(CRASH_SHARE, text, "crash:20%@600")
    many = int(nodes * float(found["share"]) / 100 + 1e-9)  # 0.29 * 100 is 28.999999999999996
    if not 1 <= many < nodes:
        raise BadInput(f"crash:{text} means {many} of {nodes} nodes: at least 1 must crash and 1 must be left")
    faults.random_crashes.append((many, seconds_to_ns(float(found["at"])), 0))


def parse_reset(faults: Faults, text: str, nodes: int) -> None:
    found = matched(RESET, text, "reset:3@100+10")
    down = seconds_to_ns(float(found["then"] or 0))
    faults.resets.append((member(int(found["who"]), nodes), seconds_to_ns(float(found["at"])), down))


def parse_partition(faults: Faults, text: str, nodes: int) -> None:
    found = matched(PARTITION, text, "partition:0-4/5-9@60+30")
    start = seconds_to_ns(float(found["at"]))
    end = start + seconds_to_ns(float(found["then"])) if found["then"] else NEVER
    a, b = group(found["a"], nodes), group(found["b"], nodes)
    if a & b:
        raise BadInput(f"node {min(a & b)} is on both sides of partition:{text}")
    faults.partitions.append((a, b, start, end))


def parse_detect(faults: Faults, text: str, nodes: int) -> None:
    found = DETECT.fullmatch(text)
    low, high = (float(found["low"]), float(found["high"] or found["low"])) if found else (1.0, 0.0)
    if low > high:
        raise BadInput(f"detect must be a time in seconds, or a shorter and a longer one such as 1-5, not {text!r}")
    faults.detect = seconds_to_ns(low), seconds_to_ns(high)


PARSERS = {"crash": parse_crash, "reset": parse_reset, "partition": parse_partition, "detect": parse_detect}
SHARES = ("loss", "dup", "reorder", "drift", "doubt", "distrust")
DURATIONS = ("trust",)


def matched(pattern: re.Pattern[str], text: str, example: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise BadInput(f"cannot read {example.partition(':')[0]}:{text}: write it as {example}")
    return found


def member(node: int, nodes: int) -> int:
    if not 0 <= node < nodes:
        raise BadInput(f"there is no node {node}: nodes are 0..{nodes - 1}")
    return node


def share(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise BadInput(f"{name} must be a share between 0 and 1, not {text!r}")
    return value


def duration(name: str, text: str) -> int:
    if not re.fullmatch(NUMBER, text):
        raise BadInput(f"{name} must be a time in seconds, not {text!r}")
    return seconds_to_ns(float(text))


def group(text: str, nodes: int) -> frozenset[int]:
    """Parse a group of nodes, such as `0-4`, `0.2.7` or `0-4.9`."""
    members: set[int] = set()
    for part in text.split("."):
        first, _, last = part.partition("-")
        if not re.fullmatch(r"\d+(-\d+)?", part) or int(first) > int(last or first):
            raise BadInput(f"cannot read the group {text!r}: write it as 0-4 or 0.2.7")
        members.update(range(int(first), int(last or first) + 1))
    return frozenset(member(node, nodes) for node in members)


class Listener(Protocol):
    def crashed(self, engine: "Engine", victim: int) -> None:
        """Plan how the others will learn of this crash."""


class FaultyNetwork:
    """Decides for every message whether it is lost, cut off by a partition, doubled or delayed."""

    def __init__(self, faults: Faults, stream: Stream, since: int) -> None:
        self.faults = faults
        self.since = since  # when the workload began: times of partitions count from there
        self.stream = stream

    def carry(self, engine: "Engine", src: int, dst: int, msg: Message) -> None:
        if src != dst and (self.cut(src, dst, engine.now - self.since) or self.happens(self.faults.loss)):
            engine.lose(msg)
            return
        self.deliver(engine, src, dst, msg)
        if src != dst and self.happens(self.faults.dup):
            self.deliver(engine, src, dst, msg)

    def deliver(self, engine: "Engine", src: int, dst: int, msg: Message) -> None:
        delay = engine.latency.delay(src, dst)
        if self.happens(self.faults.reorder):
            delay += self.stream.below(min((STRETCH - 1) * delay, NEVER - delay) + 1)
        engine.push(engine.now + delay, DELIVER, dst, src, msg)

    def happens(self, share: float) -> bool:
        return share > 0.0 and self.stream.unit() < share

    def cut(self, src: int, dst: int, now: int) -> bool:
        return any(
            start <= now < end and ((src in a and dst in b) or (src in b and dst in a))
            for a, b, start, end in self.faults.partitions
        )


def install(
    faults: Faults, engine: "Engine", listens: bool, viewed: bool, seed: int, backups: int | None = None
) -> None:
    """Plan all faults of a run.

    `listens`: the protocol uses failure detectors. `viewed`: the nodes are given views of the membership. `backups`:
    how many peers keep copies of each identity; None if the nodes do not stand above `homes`.
    """
    stream = Stream(f"{seed}:faults")
    if faults.drift:
        engine.clocks = drift_apart(faults.drift, engine, Stream(f"{seed}:clocks"))
    if faults.of_network():
        engine.network = FaultyNetwork(faults, stream, engine.now)
    crashes = [*faults.crashes, *draw_crashes(faults, len(engine.nodes), stream)]
    listeners: list[Listener] = []
    if listens:
        detectors = Detectors(faults.detect, faults.trust, faults.doubt, faults.distrust, stream)
        detectors.begin(engine, {node for node, _ in crashes})
        listeners.append(detectors)
    takeovers = Takeovers(faults.detect[1], backups, stream, viewed) if backups is not None else None
    if takeovers is not None:
        listeners.append(takeovers)
    elif viewed:
        listeners.append(Views(faults.detect[1], stream))
    repair = RingRepair(faults.detect[1]) if backups is None and engine.joins is None and has_ring(engine) else None
    if repair is not None:
        listeners.append(repair)
    engine.mortal = engine.mortal or bool(crashes or faults.resets)
    for node, at in crashes:
        engine.plan(engine.now + at, partial(crash_for_good, node=node, listeners=listeners))
    for node, at, down in faults.resets:
        engine.plan(engine.now + at, partial(crash, node=node, takeovers=takeovers, repair=repair))
        engine.plan(engine.now + at + down, partial(come_back, node=node))


def drift_apart(share: float, engine: "Engine", stream: Stream) -> list[Clock]:
    """A clock per node. They agree now, and drift apart from here on."""
    drift = round(share * MILLION)
    rates = [drawn_clock(drift, 0, stream.below).ahead for _ in range(engine.n)]
    return [Clock(-(engine.now * ahead // MILLION), ahead) for ahead in rates]


def draw_crashes(faults: Faults, nodes: int, stream: Stream) -> list[tuple[int, int]]:
    drawn: list[tuple[int, int]] = []
    named = {node for node, _ in faults.crashes}
    for many, start, every in faults.random_crashes:
        taken = named | {node for node, _ in drawn}
        left = [node for node in range(nodes) if node not in taken]
        for i, node in enumerate(sample(stream, left, min(many, len(left)))):
            drawn.append((node, start + i * every))
    return drawn


def has_ring(engine: "Engine") -> bool:
    return "ring" in engine.setup.shared


def crash(engine: "Engine", node: int, takeovers: Takeovers | None, repair: RingRepair | None) -> None:
    """Stop the node for a while. It stays on the ring, but its neighbours on paths notice that it has failed."""
    engine.crash(node)
    if repair is not None:
        repair.expect(engine, node)
    if takeovers is not None:
        takeovers.crashed(engine, node)


def crash_for_good(engine: "Engine", node: int, listeners: Sequence[Listener]) -> None:
    engine.crash(node)
    for seat in engine.seat_numbers(node):
        engine.workload.gone(seat, engine.now)
    for listener in listeners:
        listener.crashed(engine, node)
