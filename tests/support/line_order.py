"""Counts overtakes in one_line: how many requests that came into the line later are served before an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairgate.core.declare import merged_fields
from fairgate.core.ids import NIL
from fairgate.live.live_protocols import options_of
from fairgate.protocols.one_line.protocol import OneLine
from fairgate.sim.config import Config
from fairgate.trace.journal import Step
from tests.paper.test_holes import steps_of

Request = tuple[int, int]
FIELDS = ["version", *[field.name for field in merged_fields(OneLine) if field.is_state]]
WITHOUT_PROMISES = [  # as live gates run, with stays and latencies that differ
    Config(
        "one_line",
        nodes=8,
        k=k,
        cs=0.01,
        rate=1e3,
        latency=latency,
        exponential_cs=True,
        requests=40,
        faults="reorder:0.3",
        options={"reign": 4, **options_of("one_line")},
    )
    for k in (1, 2, 3)
    for latency in ("0.001", "uniform:0,0.02")
]
LINE, N = FIELDS.index("line"), FIELDS.index("n")  # in a node's key


def lines_in(step: Step) -> Iterator[Any]:
    """The Line after this step, if the node has it or has just sent it."""
    line = step.key[LINE]
    if line:
        yield line
    yield from (effect[2][1] for effect in step.effects if effect[0] == "send" and effect[2][0] == "ol.moved")


def known_to(line: Any) -> Iterator[Request]:
    """The requests that this Line has lent a token to, has promised one, or keeps waiting."""
    loans, _, _, _, _, waiting, _, _, again, *_ = line
    for _, _, holder, n, first, first_n, rest, *_ in loans:
        if holder != NIL:
            yield holder, n
        if first != NIL:
            yield first, first_n
        yield from (tuple(request) for request in rest)
    yield from (tuple(request) for request in (*again, *waiting))


def served_in(step: Step) -> Iterator[Request]:
    """The requests to which a token was sent in this step, or that were granted without one."""
    for effect in step.effects:
        if effect[0] == "granted":
            yield step.node, step.key[N]
        elif effect[0] == "send" and effect[2][0] == "ol.token":
            yield effect[1], effect[2][3]
        elif effect[0] == "send" and effect[2][0] == "ol.moved" and effect[2][2] != NIL:
            _, _, holder, n, *_ = effect[2][1][0][effect[2][2]]
            yield holder, n


def most_overtakes(config: Config) -> int:
    """The most later requests that were served before an earlier one: a token was sent to them in an earlier step."""
    place: dict[Request, int] = {}
    past: dict[Request, int] = {}  # request in line -> later ones that have been served
    most = 0
    for step in steps_of(config):
        for line in lines_in(step):
            for request in known_to(line):
                if request not in place:
                    place[request] = len(place)
                    past[request] = 0
        for request in [request for request in served_in(step) if past.pop(request, None) is not None]:
            for other in past:
                past[other] += place[other] < place[request]
        most = max(most, *past.values(), 0)
    return most
