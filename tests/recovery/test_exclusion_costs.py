"""What the exclusion of a member costs the others, as docs/guarantees.md says. A trip is the time of one message."""

from __future__ import annotations

import pytest

from fairgate.core.ids import NIL
from fairgate.registry import find_protocol
from tests.recovery.test_ghosts import enter, network
from tests.support.regenerate_walk import Mortal

N, K = 20, 3
OUT = N - 1  # the member that is excluded, except where it is the leader


def trips_until_open(gate: Mortal, members: tuple[int, ...], ghost: int) -> tuple[int, int]:
    """Trips until nobody is frozen (NIL: not before a later view), and the messages of the census."""
    before = len(gate.flight)
    for me in members:
        gate.step(me, "on_view", 1, members, (ghost,))
    messages = len(gate.flight) - before
    for trip in range(1, 4):
        for _ in range(len(gate.flight)):
            gate.deliver(0)
        messages += sum(flight.msg.tag == "rg.epoch" for flight in gate.flight)
        if all(gate.nodes[me].epoch == 1 for me in members):  # type: ignore[attr-defined]
            return trip, messages
    return NIL, messages


def cost(protocol: str, who: str) -> tuple[int, int, int]:
    """Trips that the gate is frozen, messages, and slots that can be used before the lease is over."""
    k = K if find_protocol(protocol).about.many else 1
    gate = network(N, k, protocol)
    ghost = 0 if who == "leader" else OUT
    if who == "holder":
        enter(gate, ghost)
    elif who == "waiter":
        enter(gate, *range(1, k + 1), ghost)
    else:
        enter(gate, 1)  # with an exit, so that the token is not where it began
        gate.release(1)
        gate.deliver_all()
    members = tuple([me for me in range(N) if me != ghost])
    trips, messages = trips_until_open(gate, members, ghost)
    gate.deliver_all()
    enter(gate, *[me for me in members if me not in gate.inside][: 2 * k])
    return trips, messages, len([me for me in gate.inside if me != ghost])


COSTS = {
    ("bv95", "idle"): (2, 36, 3),
    ("bv95", "waiter"): (2, 36, 3),
    ("bv95", "holder"): (2, 36, 2),
    ("bv95", "leader"): (2, 36, 2),
    ("naimi_trehel", "idle"): (2, 36, 1),
    ("naimi_trehel", "waiter"): (2, 36, 1),
    ("naimi_trehel", "holder"): (NIL, 18, 0),
    ("naimi_trehel", "leader"): (2, 36, 1),
    ("one_line", "idle"): (2, 36, 3),
    ("one_line", "waiter"): (2, 36, 3),
    ("one_line", "holder"): (2, 36, 2),
    ("one_line", "leader"): (NIL, 18, 0),
    ("centralised", "idle"): (2, 36, 3),
    ("centralised", "waiter"): (2, 36, 3),
    ("centralised", "holder"): (2, 36, 2),
    ("centralised", "leader"): (NIL, 18, 0),
    ("raymond", "idle"): (2, 36, 2),
    ("raymond", "waiter"): (2, 36, 3),
    ("raymond", "holder"): (2, 36, 2),
    ("raymond", "leader"): (2, 36, 2),
}


@pytest.mark.parametrize(("protocol", "who"), COSTS)
def test_what_an_exclusion_costs(protocol: str, who: str) -> None:
    assert cost(protocol, who) == COSTS[protocol, who]
