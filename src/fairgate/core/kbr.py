"""Key-based routing: the interface between an overlay and the protocols above it.

A `Keyed` message travels to the node that owns the key `target`. `door.route(msg)` starts it. At every node on the
path that is not the owner, including the first, the overlay calls the protocol's `forward`, which may pass the message
on, replace it or absorb it. The owner gets it by `deliver`. A Keyed message may also be *sent* directly to a node that
is believed to be the owner. If the belief is right, this saves the hops; if not, the message is routed on from there.
Messages that are not Keyed go directly from node to node and arrive by `on_message`.

A message that a node routes or sends to itself never reaches the network: it is handled within the same step, after
the handler that sent it.

A `Routed` protocol is a mutex for one gate. `Gates` (overlay/gates.py) carries one instance for each gate that the node
is involved in, so every message of these protocols names its gate.
"""

from fairgate.core.keyed import Keyed
from fairgate.core.keyspace import key_of
from fairgate.core.layers import Through
from fairgate.core.message import Key
from fairgate.core.mutex import Mutex
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup

REPLICAS = 3  # default of the option `replicas` at k = 1


class Door(Through):
    """The outbox that an overlay gives to the node above it."""

    def route(self, msg: Keyed) -> None:
        """Route the message to the owner of its target."""
        raise NotImplementedError

    def lookup(self, key: int) -> None:
        """Look up the owner of this key. The answer arrives by `on_found`, or never."""
        raise NotImplementedError

    def next_hop(self, key: int) -> int:
        """The next node on the path to this key, or NIL if this node owns it."""
        raise NotImplementedError

    def neighbours(self, count: int) -> tuple[int, ...]:
        """Up to `count` nodes that follow this one: they take over its keys if it fails."""
        raise NotImplementedError

    def serves(self, key: int) -> bool:
        """Does this node own the key, and may it serve it? On a dynamic ring, that takes its title as well."""
        raise NotImplementedError

    def zone(self) -> tuple[int, ...]:
        """The keys around its own place that this node serves: (start, end], as in `on_range`. Empty if none."""
        raise NotImplementedError


class Rider(Node):
    """A node that an overlay can carry."""

    intercepts = True  # does it inspect messages in transit? If not, `forward` is never called

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        """Called when a message from `src` (this node itself, if it starts here) is about to go on to `next_hop`.

        Returns the message to send on: the same one, another one, or None to stop it here.
        """
        return msg

    def deliver(self, src: int, msg: Keyed) -> None:
        """Called with a message whose target this node owns; `src` was the last hop."""
        raise NotImplementedError

    def on_found(self, key: int, owner: int) -> None:
        """The answer to `lookup`: `owner` owns the key, or did when it answered."""

    def on_range(self, start: int, end: int) -> None:
        """Called when this node has gained or lost keys. It now owns (start, end]; all keys if start == end."""

    def on_tables(self) -> None:
        """Called when the neighbours of this node or the keys that it serves may have changed."""

    def give_keys(self, first: int, last: int) -> Key:
        """Called when the keys in the given range move to another node.

        Returns the state stored for them, each item as (key, ...), and removes it here.
        """
        return ()

    def take_keys(self, heirlooms: Key) -> None:
        """Called with the state that the previous owner stored for keys that this node owns now."""


class Routed(Mutex):
    """A mutex on an overlay, for one gate. The names of the gate's replicas are hashed onto the circle of keys.

    A class may have an attribute `passes`: a type of message that a node without any state for the gate forwards
    unchanged, and without acquiring state. `Gates` creates no instance for such a message.

    It may have an attribute `stamped`: its Lamport clock advances with time, so a node's key must contain that clock,
    even for gates that are made later.

    It may have an attribute `zoned`: it depends on the keys that its node serves (`Door.zone`), not only on messages
    for them, so it is told of every change.

    It may also have an attribute `prefetcher`: the name of a module that tells the simulator which memory the messages
    will need (core/prefetch.pyx).
    """

    overlay = "full"  # the overlay to use if none is named
    intercepts = True  # see Rider

    def set_up(self, me: int, setup: Setup, out: Outbox) -> None:
        assert isinstance(out, Door), "a DHT protocol needs the `gates` layer below it"
        self.door = out
        self.gate: int = setup.options.get("gate", 0)
        self.keys = replica_keys(setup)  # keys[i] is the key of replica i
        Mutex.set_up(self, me, setup, out)

    # What a protocol implements in addition to a Mutex; see Rider.

    def forward(self, src: int, msg: Keyed, next_hop: int) -> Keyed | None:
        return msg

    def deliver(self, src: int, msg: Keyed) -> None:
        raise NotImplementedError

    def on_found(self, key: int, owner: int) -> None:
        pass

    def on_range(self, start: int, end: int) -> None:
        pass

    def on_tables(self) -> None:
        """Called only if the class is `zoned`; see Rider."""

    def start_clock(self, clock: int) -> None:
        """Called when the node is made: what its Lamport clock shows, if it is one that advances with time."""

    def linked(self) -> list[int]:
        """The neighbours of this node on the paths of requests. They exchange pings with it, and notice if it fails."""
        return []

    def played(self) -> list[tuple[int, int]]:
        """The replicas that this node serves, each as (number, key)."""
        raise NotImplementedError

    def give_replica(self, i: int) -> Key:
        """Hand replica i over to another node: returns its state, from which the other node continues."""
        raise NotImplementedError

    def take_replica(self, i: int, state: Key) -> None:
        """Serve replica i from now on, starting from the state that `give_replica` returned elsewhere."""
        raise NotImplementedError


def replica_keys(setup: Setup) -> tuple[int, ...]:
    """The keys of the gate's replicas. SG section II: the replicas of a resource are named `resource:i`."""
    keys: tuple[int, ...] | None = setup.shared.get("replica_keys")
    if keys is None:
        gate = setup.options.get("gate", 0)
        keys = tuple([key_of(f"gate{gate}:{i}") for i in range(replica_count(setup))])
        setup.shared["replica_keys"] = keys
    return keys


def members_of(setup: Setup) -> tuple[int, ...]:
    """The members of the DHT: all nodes except the last `outsiders`, which are only clients (overlay/outside.py)."""
    return tuple(setup.members[: len(setup.members) - setup.options.get("outsiders", 0)])


def replica_count(setup: Setup) -> int:
    """The number of replicas. By default 2k + 1, so that quorums of two let at most k nodes in."""
    count: int = setup.options.get("replicas", 2 * setup.k + 1)
    return count
