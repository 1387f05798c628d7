"""A few peers that agree on rosters over a network that works, to be stepped by hand (recovery/views.py)."""

from __future__ import annotations

from typing import Any

from fairgate.core.message import Message, decode
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import Value
from fairgate.recovery.ballots import LEAD
from fairgate.recovery.views import Views
from fairgate.walks.rosters import Ledger

SECOND = 1_000_000_000
OPTIONS = {"lease": SECOND, "drift": 10_000, "period": SECOND // 10, "patience": SECOND * 4 // 10}
DELAY = SECOND // 1000  # of a message
PATIENCE = OPTIONS["patience"] / SECOND


class Told:
    """An Above that records what it is told."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.applied_numbers: list[int] = []
        self.denials: list[tuple[int, str]] = []
        self.exclusions: list[str] = []
        self.times_turned_away = 0

    def adopted(self, at: int, value: Value) -> None:
        self.versions.append(at)

    def applied(self, number: int) -> None:
        self.applied_numbers.append(number)

    def denied(self, number: int, why: str) -> None:
        self.denials.append((number, why))

    def turned_away(self) -> None:
        self.times_turned_away += 1

    def excluded(self, why: str) -> None:
        self.exclusions.append(why)


class Peers:
    """`founders` begin together, the first of them as voters; others join. Every message takes `DELAY`."""

    views = Views  # the class of the nodes; a test of a mutant replaces it

    def __init__(self, founders: int = 1, voters: int = 1, hosts: tuple[int, ...] = (), **options: Any) -> None:
        first = tuple(range(founders))
        self.setup = Setup(first, options={**OPTIONS, "voters": first[:voters], **options})
        self.book = Ledger(hosts)
        self.now = 0
        self.order = 0
        self.queue: list[tuple[int, int, int, str, Any]] = []
        self.nodes: dict[int, Views] = {}
        self.told: dict[int, Told] = {}
        self.outboxes: dict[int, Collected] = {}
        self.dead: set[int] = set()
        self.cut: set[frozenset[int]] = set()  # pairs that cannot reach each other
        self.held: list[tuple[int, int, Message]] = []  # messages that `holds` kept back
        self.holds: Any = lambda src, dst, msg: False
        for me in first:
            self.new(me)

    def new(self, me: int) -> Views:
        self.told[me] = Told()
        self.outboxes[me] = Collected(lambda n: me % n)
        self.nodes[me] = self.views(me, self.setup, self.outboxes[me], self.book, self.told[me])
        self.do(me, "on_start")
        return self.nodes[me]

    def join(self, me: int, contact: int = 0, about: Any = (), standing: bool = True) -> Views:
        node = self.new(me)
        node.about_me = about
        node.standing = standing
        self.do(me, "on_join", contact)
        return node

    def do(self, me: int, call: str, *arguments: Any) -> Any:
        node = self.nodes[me]
        node.now = self.now
        if call == "on_message":
            src, msg = arguments
            arguments = (src, decode(msg.key()))  # the classes of messages are those of the node, which may be a mutant
        result = getattr(node, call)(*arguments)
        for effect in self.outboxes[me].drain():
            self.order += 1
            if effect[0] == "send":
                self.send(me, effect[1], effect[2])
            elif effect[0] == "timer":
                due = (node.timers or {})[effect[1]]
                self.queue.append((due, self.order, me, "timer", effect[1]))
        return result

    def send(self, src: int, dst: int, msg: Message) -> None:
        if self.holds(src, dst, msg):
            self.held.append((src, dst, msg))
        elif {src, dst} not in self.cut:
            self.queue.append((self.now + DELAY, self.order, dst, "message", (src, msg)))

    def run(self, seconds: float) -> None:
        until = self.now + round(seconds * SECOND)
        while self.queue and min(self.queue)[0] <= until:
            event = min(self.queue)
            self.queue.remove(event)
            self.now, _, me, what, argument = event
            if me in self.dead or me not in self.nodes:
                continue
            if what == "message":
                self.do(me, "on_message", *argument)
            elif (self.nodes[me].timers or {}).get(argument) == self.now:
                self.do(me, "timer_due", argument)
        self.now = until
        for node in self.nodes.values():
            node.now = until

    def kill(self, me: int, noticed: bool = True) -> None:
        self.dead.add(me)
        for other in self.nodes:
            if noticed and other not in self.dead:
                self.do(other, "on_suspect", me, "")

    def members(self, of: int = 0) -> list[int]:
        return [member[0] for member in self.nodes[of].value[2]]

    def voters(self, of: int = 0) -> list[int]:
        return sorted(self.nodes[of].value[1])

    def lingering(self, of: int = 0) -> list[int]:
        return [peer for peer, _ in self.nodes[of].value[3]]


def trio(**options: Any) -> Peers:
    """Three peers that all vote, and one more; peer 0 leads."""
    peers = Peers(4, 3, **options)
    peers.do(0, "on_timer", "watch")
    peers.run(0.3)
    assert peers.nodes[0].phase == LEAD
    return peers
