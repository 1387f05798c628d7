"""All gates of one node, above one overlay: one protocol node per gate that this node deals with.

Gates are numbered 0..resources-1. The number of a request encodes its gate, `number % resources`; a message names its
gate. The protocol node of a gate is made on its first input, so unused gates cost next to nothing even in large rings.
"""

from collections.abc import Callable

from fairgate.core.kbr import Door, Rider, Routed
from fairgate.core.keyed import Gated, Keyed
from fairgate.core.layers import Layer
from fairgate.core.message import Key, Message
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

MakeRouted = Callable[[int, Setup, Door], Routed]


class Gates(Rider):
    timed = True  # because the protocols may be

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeRouted) -> None:
        assert isinstance(out, Door), "gates stand on an overlay"
        Rider.__init__(self, me, setup, out)
        self.make = upper
        self.intercepts: bool = getattr(upper, "intercepts", True)
        self.passes: type[Keyed] = getattr(upper, "passes", Keyed)
        self.resources: int = setup.options.get("resources", 1)
        self.setups = gate_setups(setup, self.resources)
        self.gates: list[Routed | None] = [None] * self.resources
        self.stamped: bool = getattr(upper, "stamped", False)
        self.zoned: bool = getattr(upper, "zoned", False)
        self.ahead = 0  # how far the clocks of new gates are ahead of this node's own: not 0 after a load only
        self.acting = 0  # the gate whose step is running
        self.door: GateDoor | None = None  # the outbox of all gates, made with the first gate
        self.crashed: set[int] | None = None  # known crashes, also reported to gates that are made later

    def at(self, gate: int) -> Routed:
        """The protocol node of this gate, with its clock set; every input is passed up through this."""
        self.acting = gate
        node = self.gates[gate]
        if node is None:
            node = self.open(gate)
        node.now = self.now
        return node

    def open(self, gate: int) -> Routed:
        """Make the protocol node of this gate."""
        if self.door is None:
            self.door = GateDoor(self)
        node = self.gates[gate] = self.make(self.me, self.setups[gate], self.door)
        node.now = self.now
        if self.ahead:
            node.start_clock(self.now + self.ahead)
        if self.crashed is not None:
            for peer in sorted(self.crashed):
                node.on_crash(peer)
        return node

    def made(self) -> list[int]:
        """The gates whose protocol node exists."""
        return [gate for gate in range(self.resources) if self.gates[gate] is not None]

    def on_acquire(self, request: int) -> None:
        self.at(request % self.resources).on_acquire(request)

    def on_release(self, request: int) -> None:
        self.at(request % self.resources).on_release(request)

    def on_cancel(self, request: int) -> None:
        self.at(request % self.resources).on_cancel(request)

    def on_message(self, src: int, msg: Message) -> None:
        assert isinstance(msg, Gated), f"{msg} names no gate"
        gated: Gated = msg  # compiled code reads the fields of a typed variable directly
        self.at(gated.gate).on_message(src, gated)

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        if type(msg) is self.passes and self.gates[msg.gate] is None:
            return msg  # without making a protocol node
        return self.at(msg.gate).forward(src, msg, next_hop)

    def deliver(self, src: int, msg: Keyed) -> None:
        self.at(msg.gate).deliver(src, msg)

    def on_timer(self, name: str) -> None:
        gate, _, rest = name.partition("/")
        self.at(int(gate)).timer_due(rest)

    def on_found(self, key: int, owner: int) -> None:
        for gate in self.made():
            self.at(gate).on_found(key, owner)

    def on_range(self, start: int, end: int) -> None:
        for gate in self.made():
            self.at(gate).on_range(start, end)

    def on_tables(self) -> None:
        if self.zoned:
            for gate in self.made():
                self.at(gate).on_tables()

    def give_keys(self, first: int, last: int) -> Key:
        given = []
        for gate in self.made():
            node = self.at(gate)
            for i, key in node.played():
                if first <= key <= last:
                    given.append((key, gate, i, node.give_replica(i)))
        return tuple(given)

    def take_keys(self, heirlooms: Key) -> None:
        for _, gate, i, state in heirlooms:
            self.at(gate).take_replica(i, state)

    def on_suspect(self, peer: int, detector: str) -> None:
        for gate in self.made():
            self.at(gate).on_suspect(peer, detector)

    def on_trust(self, peer: int, detector: str) -> None:
        if self.crashed is not None:
            self.crashed.discard(peer)
        for gate in self.made():
            self.at(gate).on_trust(peer, detector)

    def on_crash(self, peer: int) -> None:
        if self.crashed is None:
            self.crashed = set()
        self.crashed.add(peer)
        for gate in self.made():
            self.at(gate).on_crash(peer)

    def on_leave(self) -> None:
        for gate in self.made():
            self.at(gate).on_leave()

    def linked(self) -> list[int]:
        """The neighbours of this node on the paths of all gates, which notice if it fails."""
        return sorted({peer for gate in self.made() for peer in self.at(gate).linked()} - {self.me})

    def key(self) -> Key:
        gates = tuple([(gate, self.at(gate).key()) for gate in self.made()])
        clock = (self.now + self.ahead,) if self.stamped else ()
        return (self.version, gates, tuple(sorted(self.crashed or ())), *clock)

    def load(self, key: Key) -> None:
        self.check_version(key)
        for gate, state in key[1]:
            self.at(gate).load(tuple(state))
        self.crashed = set(key[2]) or None
        if self.stamped:
            self.ahead = key[3] - self.now

    def tokens(self) -> int:
        return sum([node.tokens() for node in self.gates if node is not None])


class GateDoor(Door):
    """The outbox of the protocol nodes of all gates.

    They share one because a run may have a hundred thousand of them: a door for each would be one more object to fetch
    from memory for every message sent.
    """

    def __init__(self, gates: Gates) -> None:
        assert isinstance(gates.out, Door)
        Door.__init__(self, gates, "")
        self.gates = gates
        self.overlay = gates.out
        self.prefixes = gate_prefixes(gates.setup, gates.resources)

    def send(self, dst: int, msg: Message) -> None:
        self.overlay.send(dst, msg)

    def set_timer(self, name: str, delay: int) -> None:
        self.overlay.set_timer(self.prefixes[self.gates.acting] + name, delay)

    def cancel_timer(self, name: str) -> None:
        self.overlay.cancel_timer(self.prefixes[self.gates.acting] + name)

    def route(self, msg: Keyed) -> None:
        self.overlay.route(msg)

    def lookup(self, key: int) -> None:
        self.overlay.lookup(key)

    def next_hop(self, key: int) -> int:
        return self.overlay.next_hop(key)

    def neighbours(self, count: int) -> tuple[int, ...]:
        return self.overlay.neighbours(count)

    def serves(self, key: int) -> bool:
        return self.overlay.serves(key)

    def zone(self) -> tuple[int, ...]:
        return self.overlay.zone()


def gates_of(node: Node) -> Gates:
    """The gates at the top of a node's layers."""
    while isinstance(node, Layer):
        node = node.upper
    assert isinstance(node, Gates), "this node has no gates"
    return node


def gate_setups(setup: Setup, resources: int) -> list[Setup]:
    """The setups of the gates, shared by all nodes."""
    setups: list[Setup] | None = setup.shared.get("gates")
    if setups is None:
        setups = [
            Setup(setup.members, setup.k, setup.root, setup.epoch, {**setup.options, "gate": gate})
            for gate in range(resources)
        ]
        setup.shared["gates"] = setups
    return setups


def gate_prefixes(setup: Setup, resources: int) -> list[str]:
    """The prefixes of the gates' timer names, shared by all nodes."""
    prefixes: list[str] | None = setup.shared.get("gate_prefixes")
    if prefixes is None:
        prefixes = setup.shared["gate_prefixes"] = [f"{gate}/" for gate in range(resources)]
    return prefixes
