"""Overlays in virtual time: nodes join, leave and crash, and messages overtake each other.

The event queue is small and fast, so that a test can run thousands of nodes. Above each overlay node is a `Witness`,
which records what the overlay tells it. `settled_breaches` compares every routing table with the ideal one for the
current members.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from fairgate.core.declare import message
from fairgate.core.ids import NIL
from fairgate.core.kbr import Door, Rider
from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import apart, clockwise, place_of
from fairgate.core.layers import over
from fairgate.core.message import Key, Message
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Options, Setup
from fairgate.overlay.chord_table import KeptChordTable, SettledChordTable
from fairgate.overlay.pastry_table import KeptPastryTable, SettledPastryTable
from fairgate.overlay.ring import Ring
from fairgate.overlay.table import Table

MS = 1_000_000
PERIOD = 1_000 * MS  # of the upkeep in these tests
QUICK, SLOW = 5 * MS, 100 * MS  # the shortest and longest latency of a message


@message("test.parcel")
class Parcel(Keyed):
    """A test message to the owner of a key."""

    number: int


class Witness(Rider):
    """The rider of every overlay node: records what the overlay tells it."""

    def __init__(self, me: int, setup: Setup, out: Any) -> None:
        Rider.__init__(self, me, setup, out)
        self.delivered: list[int] = []  # the numbers of parcels
        self.forwarded: list[int] = []
        self.found: list[tuple[int, int]] = []  # (key, owner)
        self.ranges: list[tuple[int, int]] = []

    def on_acquire(self, request: int) -> None:
        """Send a parcel to a key derived from the request's number. The generic walks drive this node so."""
        assert isinstance(self.out, Door)
        self.out.route(Parcel(0, place_of(~request & 0xFFFF), request))

    def on_release(self, request: int) -> None:
        pass

    def on_cancel(self, request: int) -> None:
        pass

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        assert isinstance(msg, Parcel)
        self.forwarded.append(msg.number)
        return msg

    def deliver(self, src: int, msg: Keyed) -> None:
        assert isinstance(msg, Parcel)
        self.delivered.append(msg.number)

    def on_found(self, key: int, owner: int) -> None:
        self.found.append((key, owner))

    def on_range(self, start: int, end: int) -> None:
        self.ranges.append((start, end))

    def key(self) -> Key:
        return (1,)

    def load(self, key: Key) -> None:
        pass


class Wire(Outbox):
    """The outbox of a node: puts its effects into the event queue."""

    def __init__(self, world: World, me: int) -> None:
        self.world = world
        self.me = me
        self.set: dict[str, int] = {}  # timer -> number of the event that fires it

    def send(self, dst: int, msg: Message) -> None:
        self.world.sent[msg.tag] += 1
        self.world.push(self.world.delay(), dst, "on_message", (self.me, msg))

    def set_timer(self, name: str, delay: int) -> None:
        self.set[name] = self.world.push(delay, self.me, "timer_due", (name,))

    def cancel_timer(self, name: str) -> None:
        self.set.pop(name, None)

    def note(self, mark: str) -> None:
        self.world.marks[mark] += 1

    def choose(self, n: int) -> int:
        return self.world.rng.randrange(n)


class World:
    """The clock, the event queue and the live nodes."""

    def __init__(self, layer: Any, base: int, seed: int, options: Options | None = None) -> None:
        """Nodes 0 to `base` - 1 form a ring from the start."""
        self.rng = random.Random(seed)
        self.layer = over(layer, Witness)
        self.setup = Setup(tuple(range(base)), options={"overlay_upkeep": PERIOD, **(options or {})})
        self.now = 0
        self.pushed = 0
        self.queue: list[tuple[int, int, int, str, tuple[Any, ...]]] = []
        self.nodes: dict[int, Any] = {}
        self.wires: dict[int, Wire] = {}
        self.sent: Counter[str] = Counter()
        self.marks: Counter[str] = Counter()
        self.parcels: dict[int, tuple[int, int]] = {}  # number -> (key, sender)
        self.newest = 1_000_000  # the id of the node that joined last
        for me in range(base):
            self.make(me)
            self.step(me, "on_start")

    # Events.

    def delay(self) -> int:
        return self.rng.randrange(QUICK, SLOW)

    def push(self, delay: int, me: int, call: str, arguments: tuple[Any, ...]) -> int:
        self.pushed += 1
        heappush(self.queue, (self.now + delay, self.pushed, me, call, arguments))
        return self.pushed

    def step(self, me: int, call: str, *arguments: Any) -> None:
        node = self.nodes[me]
        node.now = self.now
        getattr(node, call)(*arguments)

    def run(self, length: int) -> None:
        end = self.now + length
        while self.queue and self.queue[0][0] <= end:
            self.one()
        self.now = end

    def run_until(self, done: Callable[[], bool], most: int = 100_000) -> None:
        for _ in range(most):
            if done():
                return
            self.one()
        raise AssertionError(f"the condition was not met within {most} events")

    def one(self) -> None:
        """Process the next event."""
        self.now, number, me, call, arguments = heappop(self.queue)
        if me not in self.nodes:
            return  # the node is gone
        if call == "crash":
            self.crash(me)
            return
        if call == "timer_due":
            timers = self.wires[me].set
            if timers.get(arguments[0]) != number:
                return  # the timer was set again, or cancelled
            del timers[arguments[0]]
        self.step(me, call, *arguments)

    def periods(self, count: int) -> None:
        self.run(count * PERIOD)

    # Membership.

    def make(self, me: int) -> None:
        self.wires[me] = Wire(self, me)
        self.nodes[me] = self.layer(me, self.setup, self.wires[me])

    def join(self, me: int, contact: int | None = None) -> None:
        contact = self.rng.choice(self.members()) if contact is None else contact
        self.make(me)
        self.step(me, "on_join", contact)

    def join_again(self) -> None:
        """Nodes whose contact disappeared before they had joined try another one."""
        for me, node in sorted(self.nodes.items()):
            if not node.joined and node.contact not in self.nodes:
                self.step(me, "on_join", self.rng.choice(self.members()))

    def leave(self, me: int) -> None:
        """The node announces that it leaves, and stays long enough to forward messages in flight to it."""
        self.step(me, "on_leave")
        self.push(2 * SLOW, me, "crash", ())

    def crash(self, me: int) -> None:
        del self.nodes[me], self.wires[me]

    def members(self) -> list[int]:
        return sorted(me for me, node in self.nodes.items() if node.joined)

    # Parcels and lookups.

    def send_parcel(self, me: int, key: int) -> int:
        number = len(self.parcels)
        self.parcels[number] = (key, me)
        node = self.nodes[me]
        node.now = self.now
        node.rider.out.route(Parcel(0, key, number))
        node.finish_step()
        return number

    def lookup(self, me: int, key: int) -> None:
        node = self.nodes[me]
        node.now = self.now
        node.lookup(key)
        node.finish_step()

    def delivered(self) -> dict[int, list[int]]:
        """Parcel number -> the nodes that received it."""
        found: dict[int, list[int]] = {}
        for me, node in self.nodes.items():
            for number in node.rider.delivered:
                found.setdefault(number, []).append(me)
        return found

    def churn(self, plan: str, pause: float) -> None:
        """One change per letter: j a node joins, l one leaves, c one crashes; `pause` is the mean gap in periods."""
        for what in plan:
            self.run(int(self.rng.expovariate(1 / (pause * PERIOD))))
            self.join_again()
            if what == "j":
                self.newest += 1
                self.join(self.newest)
            else:
                me = self.rng.choice(self.members())
                (self.leave if what == "l" else self.crash)(me)

    def rest(self, most: int) -> int:
        """Run until all nodes have joined and every table is settled; returns the periods this took, at most `most`."""
        for count in range(most):
            if not settled_breaches(self) and len(self.members()) == len(self.nodes):
                return count
            self.join_again()
            self.periods(1)
        return most

    def hops(self) -> float:
        """The average number of nodes that a parcel passed through, not counting the owner."""
        return sum(len(node.rider.forwarded) for node in self.nodes.values()) / len(self.parcels)


def shuffled(rng: random.Random, joins: int, leaves: int, crashes: int) -> str:
    plan = [*"j" * joins, *"l" * leaves, *"c" * crashes]
    rng.shuffle(plan)
    return "".join(plan)


def chord_owner(members: list[int], key: int) -> int:
    return min(members, key=lambda me: clockwise(key, place_of(me)))


def pastry_owner(members: list[int], key: int) -> int:
    return min(members, key=lambda me: (apart(key, place_of(me)), clockwise(key, place_of(me))))


def wrong_parcels(world: World, owner: Any) -> list[str]:
    """The parcels that did not arrive exactly once, at the owner of their key."""
    members, delivered = world.members(), world.delivered()
    return [
        f"parcel {number} from {src} to {key:x} arrived at {delivered.get(number)}, not at {owner(members, key)}"
        for number, (key, src) in world.parcels.items()
        if delivered.get(number) != [owner(members, key)]
    ]


def settled_breaches(world: World) -> list[str]:
    """The differences between what nodes have learned and the ideal tables for the current members."""
    ring = Ring(tuple(world.members()))
    found = []
    for me in world.members():
        node = world.nodes[me]
        kept = node.table
        if node.titles != node.owned():
            found.append(f"titles of {me}: {node.titles}, but it owns {node.owned()}")
        for what, mine, settled in compared(kept, ring):
            if mine != settled:
                found.append(f"{what} of {me}: {mine}, should be {settled}")
    return found


def compared(kept: Table, ring: Ring) -> list[tuple[str, Any, Any]]:
    if isinstance(kept, KeptChordTable):
        settled = SettledChordTable(kept.me, kept.most, 64 - kept.lowest, ring)
        before = ring.ident(ring.rank(kept.place) - 1)
        return [
            ("range", kept.owned(), settled.owned()),
            ("predecessor", kept.predecessor, NIL if before == kept.me else before),
            ("successors", kept.neighbours(99), settled.neighbours(99)),
            *[(f"finger {i}", kept.finger(i), settled.finger(i)) for i in range(kept.lowest_needed(), 64)],
        ]
    assert isinstance(kept, KeptPastryTable)
    still = SettledPastryTable(kept.me, kept.bits, 2 * kept.half, ring)
    return [
        ("range", kept.owned(), still.owned()),
        *[(f"leaves to {side}", leaves(kept, side), leaves(still, side)) for side in (1, -1)],
        *[
            (f"cell {row}, {column}", kept.cell(row, column), still.cell(row, column))
            for row in range(64 // kept.bits)
            for column in range(kept.columns)
        ],
    ]


def leaves(table: Any, side: int) -> list[int]:
    return [table.leaf(side * at) for at in range(1, table.count(side) + 1)]


def rests_after_suspicion(layer: Any, options: Options) -> bool:
    """Does a ring without fingers come to rest if a node takes its second successor, which is alive, for dead?"""
    world = World(layer, 10, 7, {**options, "chord_fingers": 0})
    order = sorted(world.members(), key=place_of)
    world.step(order[0], "on_suspect", order[2], "P")
    world.send_parcel(order[0], place_of(order[2]))  # sent in circles until the suspicion is over
    return world.rest(20) < 20 and wrong_parcels(world, chord_owner) == []


class Split(World):
    """A world in which one node can be cut off from all others."""

    isolated = NIL

    def push(self, delay: int, me: int, call: str, arguments: tuple[Any, ...]) -> int:
        if call == "on_message" and self.isolated in (me, arguments[0]):
            return 0
        return World.push(self, delay, me, call, arguments)


def rests_after_isolation(layer: Any, options: Options) -> bool:
    """Does a ring come to rest after a node was cut off from all others, until they took each other for dead?"""
    world = Split(layer, 10, 7, options)
    world.isolated = 0
    world.periods(20)
    assert world.nodes[0].table.count() == 0
    world.isolated = NIL
    return world.rest(20) < 20


def caught(layer: Any, owner: Any, options: Options, seeds: int = 3) -> str:
    """What breaks in rings of this overlay, which must settle after churn and then deliver parcels, or ""."""
    for seed in range(seeds):
        world = World(layer, 14, seed, options)
        try:
            world.churn(shuffled(world.rng, 10, 4, 4), pause=0.5)
            if world.rest(30) == 30:
                return "rest"
            for _ in range(50):
                world.send_parcel(world.rng.choice(world.members()), world.rng.getrandbits(64))
            world.periods(2)
        except Exception as error:
            return type(error).__name__
        if wrong_parcels(world, owner):
            return "parcels"
    return ""


def routes_wrong(make: Callable[[int, Ring], Any], owner: Any, members: int = 300, routes: int = 500) -> str:
    """What breaks on routes over settled tables, or ""."""
    rng = random.Random(members)
    ids = rng.sample(range(10_000), members)
    ring = Ring(tuple(ids))
    for _ in range(routes):
        key = rng.choice([rng.getrandbits(64), place_of(rng.choice(ids))])
        at, hops = rng.choice(ids), 0
        while (ahead := make(at, ring).next_hop(key)) != NIL:
            at, hops = ahead, hops + 1
            if hops > 64:
                return "circles"
        if at != owner(ids, key):
            return "owner"
    return ""
