"""A cache of the steps that nodes take.

Nodes are deterministic: the outcome of a step depends only on the node's key, the event and the choices it is given.
So each step is taken once. There is one scratch node per id; it is loaded with the key, given the event, and asked for
its new key. Where the node calls `choose(n)`, the step is repeated with every answer, and each gives an outcome.
"""

from typing import Any

from fairgate.check.interning import Interned
from fairgate.core.inputs import CALLS
from fairgate.core.layers import MakeNode
from fairgate.core.message import Key, Message, decode
from fairgate.core.node import Node
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup

GrantedPermit = tuple[int, int, int]  # request, slot, fence
Sent = tuple[int, int, Key]  # source, destination, message


class StepOutcome:
    """What one step of one node did."""

    def __init__(
        self,
        key: int,
        sent: tuple[int, ...],
        granted: GrantedPermit | None,
        lost: bool,
        choices: tuple[int, ...],
        broken: str,
    ) -> None:
        self.key = key  # the number of the node's new key
        self.sent = sent  # the numbers of the messages
        self.granted = granted
        self.lost = lost
        self.choices = choices
        self.broken = broken  # the property that this step alone breaks, or ""


class Enumerated:
    """Answers `choose(n)` from a prefix, then with 0; `next_prefix` gives the next combination to try."""

    def __init__(self, prefix: tuple[int, ...]) -> None:
        self.prefix = prefix
        self.made: list[int] = []
        self.widths: list[int] = []

    def __call__(self, n: int) -> int:
        at = len(self.made)
        choice = self.prefix[at] if at < len(self.prefix) else 0
        self.made.append(choice)
        self.widths.append(n)
        return choice

    def next_prefix(self) -> tuple[int, ...] | None:
        for at in reversed(range(len(self.made))):
            if self.made[at] + 1 < self.widths[at]:
                return (*self.made[:at], self.made[at] + 1)
        return None


class Steps:
    def __init__(self, make: MakeNode, setup: Setup, table: Interned, conserving: bool = True) -> None:
        self.outboxes = [Collected() for _ in setup.members]
        self.nodes: list[Node] = [make(me, setup, out) for me, out in zip(setup.members, self.outboxes, strict=True)]
        self.make = make
        self.setup = setup
        self.conserving = conserving  # check that each step conserves tokens and coordinators?
        self.timed = any(node.timed for node in self.nodes)
        self.armed_timers: dict[int, tuple[tuple[str, int], ...]] = {}
        self.table = table  # "key": (node, key), and "message": Sent
        self.counted: dict[int, tuple[int, int]] = {}  # number of a key or message -> its tokens and coordinators
        self.delivered: dict[int, tuple[StepOutcome, ...]] = {}
        self.remembered: dict[tuple[Any, ...], tuple[StepOutcome, ...]] = {}

    def first_key(self, me: int) -> int:
        return self.number_key(me, self.nodes[me])

    def number_key(self, me: int, node: Node) -> int:
        return self.table.number("key", (me, node.key()))

    def counts(self, number: int) -> tuple[int, int]:
        """Tokens and coordinators in a node with this key, or in this message."""
        found = self.counted.get(number)
        if found is None:
            holder: Node | Message
            if self.table.kinds[number] == "key":
                _, holder, out = self.loaded(number)
                out.drain()
            else:
                holder = decode(self.table.things[number][2])
            found = self.counted[number] = (holder.tokens(), holder.coordinators())
        return found

    def deliver(self, key: int, message: int) -> tuple[StepOutcome, ...]:
        found = self.delivered.get(key << 32 | message)
        if found is None:
            src, _, fields = self.table.things[message]
            found = self.outcomes(key, "message", (src, decode(fields)), self.counts(message))
            self.delivered[key << 32 | message] = found
        return found

    def call(self, key: int, event: str, arguments: tuple[Any, ...]) -> tuple[StepOutcome, ...]:
        found = self.remembered.get((key, event, arguments))
        if found is None:
            found = self.outcomes(key, event, arguments, (0, 0))
            self.remembered[key, event, arguments] = found
        return found

    def outcomes(
        self, key: int, event: str, arguments: tuple[Any, ...], brought: tuple[int, int]
    ) -> tuple[StepOutcome, ...]:
        """One outcome per combination of choices. `brought`: tokens and coordinators in the message delivered."""
        found = []
        prefix: tuple[int, ...] | None = ()
        while prefix is not None:
            chooser = Enumerated(prefix)
            found.append(self.take(key, event, arguments, brought, chooser))
            prefix = chooser.next_prefix()
        return tuple(found)

    def loaded(self, key: int) -> tuple[int, Node, Collected]:
        """A node in this state, with its clock at 0. Its outbox holds the timers that loading armed."""
        me, state = self.table.things[key]
        out = self.outboxes[me]
        if self.timed:  # a node used before may still have other timers armed
            self.nodes[me] = self.make(me, self.setup, out)
        node = self.nodes[me]
        node.load(state)
        return me, node, out

    def armed(self, key: int) -> tuple[tuple[str, int], ...]:
        """The armed timers of a key, of all its layers, with the time left."""
        found = self.armed_timers.get(key)
        if found is None:
            _, _, out = self.loaded(key)
            found = self.armed_timers[key] = tuple((e[1], e[2]) for e in out.drain() if e[0] == "timer")
        return found

    def later(self, key: int, ns: int) -> int:
        """The key of the same node after `ns` in which nothing happened to it."""
        found = self.remembered.get((key, "later", ns))
        if found is None:
            me, node, out = self.loaded(key)
            out.drain()
            node.now = ns
            found = (StepOutcome(self.number_key(me, node), (), None, False, (), ""),)
            self.remembered[key, "later", ns] = found
        return found[0].key

    def take(
        self, key: int, event: str, arguments: tuple[Any, ...], brought: tuple[int, int], chooser: Enumerated
    ) -> StepOutcome:
        me, node, out = self.loaded(key)
        out.drain()
        out.chooser = chooser
        broken = ""
        try:
            getattr(node, CALLS[event])(*arguments)
        except AssertionError as error:
            broken = f"assertion: {error} (node {me})"
        except Exception as error:  # any error in a protocol is a violation to report
            broken = f"{type(error).__name__}: {error} (node {me})"
        sent, granted, lost = [], None, False
        for effect in out.drain():
            if effect[0] == "send":
                if not 0 <= effect[1] < len(self.nodes):
                    broken = broken or f"send: node {me} sent {effect[2]} to {effect[1]}, which is no member"
                else:
                    sent.append(self.table.number("message", (me, effect[1], effect[2].key())))
            elif effect[0] == "granted":
                if granted is not None:
                    broken = broken or f"grant: node {me} was granted request {effect[1]}, which does not wait"
                granted = (effect[1], effect[2], effect[3])
            elif effect[0] == "lost":
                lost = True
        after = self.number_key(me, node)
        wrong: str = node.broken()
        if wrong:
            broken = broken or f"{wrong} (node {me})"
        if self.conserving:
            broken = broken or self.conserved(key, after, sent, brought, me)
        return StepOutcome(after, tuple(sent), granted, lost, tuple(chooser.made), broken)

    def conserved(self, before: int, after: int, sent: list[int], brought: tuple[int, int], me: int) -> str:
        """What the step broke by making or losing tokens or coordinators, or "". If no step does, no run does."""
        for kind, name in enumerate(("tokens", "coordinator")):
            had = self.counts(before)[kind] + brought[kind]
            has = self.counts(after)[kind] + sum(self.counts(message)[kind] for message in sent)
            if had != has:
                return f"{name}: a step of node {me} turned {had} into {has}"
        return ""
