"""Random walks on a faulty network, with clocks that drift apart.

A walk begins with a storm: messages are dropped, duplicated and reordered, timers fire (always the earliest one, so
that time does not run backwards), and a client may crash. Then the faults stop. Every node that still waits must enter,
and in the end no message may be in flight and no timer armed. A breach raises Violation.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from fairgate.core.choose import from_floats
from fairgate.core.clock import FURTHEST, Clocks, drawn_clock
from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.scenario.manual import ManualNetwork, Violation
from fairgate.walks.stacks import Stack

MS = 1_000_000
CANCELS = 0.1  # share of waiting and inside nodes for which a cancel is among the possible moves

Move = tuple[Callable[..., Any], int]
Faults = tuple[Callable[[int], None], ...]


class LossyNetwork(ManualNetwork):
    """A ManualNetwork whose census counts tokens inside channels."""

    def fire_next(self, _: int = 0) -> None:
        """Fire the earliest timer of all nodes."""
        self.fire(*min((at, who) for who, at in self.timers.items())[1])

    def count(self) -> None:
        if not self.census:
            return
        parts: list[Any] = [node for me, node in self.nodes.items() if me not in self.crashed]
        parts += self.under_way()
        for name, made in (("tokens", self.tokens), ("coordinators", self.coordinators)):
            there = sum([getattr(part, name)() for part in parts])
            if there != made:
                raise Violation(f"{name}: {there} in the system, {made} were made")

    def under_way(self) -> list[Message]:
        """The messages that the census counts: those in flight.

        With channels, it is the messages that the sender keeps and the receiver has not taken. Copies in flight do not
        count then.
        """
        channels: dict[int, Any] = {me: node for me, node in self.nodes.items() if hasattr(node, "untaken")}
        if not channels:
            return [flight.msg for flight in self.flight]
        found: list[Message] = []
        for me, channel in channels.items():
            for peer in channel.links:
                link = channels[peer].links.get(me)
                found += channel.untaken(peer, 0 if link is None else link.taken)
        return found


def random_system(stack: Stack, rng: random.Random) -> tuple[Setup, Clocks]:
    """A small random system. Leases and re-entries are short enough to expire; clocks differ by up to `drift`."""
    n = rng.randint(2, 5)
    k = rng.randint(1, n) if stack.about.many else 1
    drift = 10_000
    options = {"lease": rng.choice([300, 1000]) * MS, "drift": drift, "channel_resend": 50 * MS, "reentry": 1}
    setup = Setup(tuple(range(n)), k, epoch=rng.randint(0, 1), options=options)
    return setup, {me: drawn_clock(drift, FURTHEST, rng.randrange) for me in setup.members}


def lossy_walk(
    network: LossyNetwork, rng: random.Random, storm: int = 150, crash: bool = False, live: bool = True
) -> None:
    """`crash`: one client crashes in the storm. `live`: check that every waiting node enters and silence follows."""
    left = dict.fromkeys(network.nodes, 2)
    victim = rng.choice([me for me in network.nodes if me != network.setup.root])
    crash_at = rng.randrange(storm) if crash else -1
    faults = rng.choice([(network.drop,), (network.duplicate,), (network.drop, network.drop, network.duplicate)])
    for step in range(storm):
        if step == crash_at:
            network.crash(victim)
            left[victim] = 0
        one_move(network, rng, left, faults)
    if live:
        calm_down(network, rng, left)


def one_move(
    network: LossyNetwork, rng: random.Random, left: dict[int, int], faults: Faults = (), cancels: float = CANCELS
) -> None:
    """Make one random move. In the storm, `faults` are as likely as deliveries, and timers fire more often."""
    flights = range(len(network.flight))
    moves: list[Move] = [
        (network.acquire, me)
        for me, more in left.items()
        if more and me not in network.waiting and me not in network.inside
    ]
    moves += [(network.release, me) for me in network.inside]
    moves += [(network.cancel, me) for me in [*network.waiting, *network.inside] if rng.random() < cancels]
    moves += [(network.deliver, index) for index in flights]
    if faults:
        fault = rng.choice(faults)
        moves += [(fault, index) for index in flights]
    if network.timers and (not moves or rng.random() < (0.4 if faults else 0.05)):
        moves = [(network.fire_next, 0)]
    if not moves:
        return
    move, argument = rng.choice(moves)
    if move == network.acquire:
        left[argument] -= 1
    move(argument)


def calm_down(network: LossyNetwork, rng: random.Random, left: dict[int, int], steps: int = 5_000) -> None:
    for _ in range(steps):
        served = not (network.waiting or network.inside or any(left.values()))
        silent = not (network.flight or network.timers)
        if served and (silent or network.crashed):  # a channel resends to a crashed node forever
            break
        one_move(network, rng, left, cancels=0)  # a cancel would hide that a node waits in vain
    else:
        if not network.waiting:
            raise Violation(
                f"silence: after {steps} calm steps {network.flight} in flight, timers {sorted(network.timers)}"
            )
        raise Violation(f"liveness: after {steps} calm steps nodes {sorted(network.waiting)} wait")
    for me, node in network.nodes.items():
        for peer, link in getattr(node, "links", {}).items():
            if not network.crashed and (link.unacknowledged or link.early):
                raise Violation(f"memory: node {me} still keeps messages to or from {peer} when all is quiet")


def lossy_walks(stack: Stack, seeds: range, crash: bool = False, live: bool = True) -> set[str]:
    """Run one walk per seed; returns the marks and the reasons for lost permits. A Violation names the seed."""
    marks: set[str] = set()
    for seed in seeds:
        rng = random.Random(seed)
        setup, clocks = random_system(stack, rng)
        network = LossyNetwork(stack.make, setup, stack.about.slots, from_floats(rng.random), clocks=clocks)
        try:
            lossy_walk(network, rng, crash=crash, live=live)
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken
        marks |= network.marks | {why for _, _, why in network.lost}
    return marks


def calm_walks(stack: Stack, seeds: range, doubled: float = 0.0, moves: int = 40) -> None:
    """Walks of a gate with leases on a network without latency: no permit is lost, and no free slot waits for a timer.

    `doubled` is the share of messages that arrive twice. Then an offer that nobody wants may block a slot for a while,
    so only safety is checked.
    """
    for seed in seeds:
        rng = random.Random(seed)
        setup, clocks = random_system(stack, rng)
        network = LossyNetwork(stack.make, setup, stack.about.slots, from_floats(rng.random), clocks=clocks)
        try:
            for _ in range(moves):
                one_quiet_move(network, rng, doubled)
                if network.lost:
                    raise Violation(
                        f"lost: node {network.lost[0][0]} lost its permit without a fault: {network.lost[0][2]}"
                    )
                if not doubled and len(network.inside) < min(setup.k, len(network.inside) + len(network.waiting)):
                    raise Violation(
                        f"prompt: nodes {sorted(network.waiting)} wait while only {sorted(network.inside)} are inside"
                    )
        except Violation as broken:
            raise Violation(f"{broken} [seed {seed}]") from broken


def one_quiet_move(network: LossyNetwork, rng: random.Random, doubled: float) -> None:
    """One node requests, releases or cancels; then time passes. Messages are always delivered at once."""
    me = rng.choice(network.setup.members)
    if me in network.inside:
        rng.choice([network.release, network.cancel])(me)
    elif me in network.waiting:
        network.cancel(me)
    else:
        network.acquire(me)
    run_until_quiet(network, rng, doubled)
    for _ in range(rng.choice([0, 1, 20])):
        network.now += network.setup.options["lease"] // 10
        run_until_quiet(network, rng, doubled)


def run_until_quiet(network: LossyNetwork, rng: random.Random, doubled: float, most: int = 1_000) -> None:
    """Deliver all messages and fire all timers that are due, without advancing the clock."""
    for _ in range(most):
        if network.flight:
            if rng.random() < doubled:
                network.duplicate()
            network.deliver()
        elif min(network.timers.values(), default=network.now + 1) <= network.now:
            network.fire_next()
        else:
            return
    raise Violation(f"silence: still busy after {most} steps in which no time passed")
