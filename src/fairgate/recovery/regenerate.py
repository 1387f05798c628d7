"""A layer that rebuilds a gate when the membership changes: a census under a new epoch (a simpler FK section 5).

Theory of operation. The driver reports every membership change to all members, as numbered views in one agreed order
(`on_view`). A new view freezes the gate: nobody is let in, and the protocol's state is discarded, including tokens and
messages in flight. Every member tells the *leader*, the first member of the view, its situation: inside and in which
slot, waiting and for how long by its own clock, or neither. When the leader has heard from all, it rebuilds the
protocol under a new epoch, the number of the view. It simulates a whole gate by itself, with a fresh node for each
member. First those inside request, and get their slots. Then those waiting request, longest waiting first. Every
message is delivered until none is left. The result is a state that the protocol could have reached by itself, with the
same members inside and the queue in the same order. The leader sends each member its node from that simulation
(`Install`), and the member continues from there. So this layer works with any protocol, and no protocol knows about it.

Safety. Messages carry their epoch, and old ones are refused. A member that is inside stays inside, in its slot, and
every later grant of that slot has a fence of the new epoch, higher than all older ones. A member that is missing from
the new view has lost its permit: the driver must not exclude a member before that permit is over. If the leader dies
during a census, another view follows, and so another epoch. Assumptions: the channels between members are reliable, and
a view has at least k members.
"""

from collections import deque
from typing import Any

from fairgate.core.declare import Fixed, Ids, message, node, typed
from fairgate.core.ids import NIL
from fairgate.core.layers import Down, Layer, MakeNode
from fairgate.core.message import Key, Message
from fairgate.core.mutex import Mutex
from fairgate.core.node import Node
from fairgate.core.outbox import Collected, Outbox
from fairgate.core.setup import Setup


@message("rg.dated")
class Dated(Message):
    """A message of the protocol, with the epoch in which it is valid."""

    epoch: int
    inner: Message

    def tokens(self) -> int:
        return self.inner.tokens()

    def coordinators(self) -> int:
        return self.inner.coordinators()


@message("rg.answer")
class Answer(Message):
    """The sender's situation in this view: its request (NIL: none), whether it is inside, its slot and waiting time."""

    view: int
    request: int
    inside: bool
    slot: int
    waited: int


@message("rg.install")
class Install(Message):
    """The receiver's node in the epoch of this view, whose setup has these members.

    `granted` says whether the census has granted the receiver's request, with `slot` and `fence`.
    """

    view: int
    members: Ids
    node: Key
    granted: bool
    slot: int
    fence: int


PLACE = 0  # number of a placeholder request, which exists only in the leader's simulation


@node
class Regenerate(Layer):
    """Carries a node of a protocol that cannot handle crashes. The protocol must not be timed."""

    make: Fixed[Any]  # a MakeNode
    epoch: int = 0  # the epoch of the protocol's node: the number of its view
    members: Ids  # of that epoch, in the order of its setup
    view: int = 0  # the latest view; the gate is frozen while it differs from the epoch
    view_members: Ids
    request: int = NIL  # the user's request that is waiting or inside
    asked: int = 0  # time of that request
    inside: bool = False
    slot: int = NIL
    answered: int = NIL  # the request reported in this view's Answer
    answers: dict[int, Answer] = {}  # received as the leader, by member: of this view or a later one
    early: list[tuple[int, Dated]] = []  # messages of an epoch that has not started here yet

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.make = upper
        Layer.__init__(self, me, setup, out, upper)
        assert not self.upper.timed, "a timed protocol cannot be rebuilt: the simulation takes no time"

    def initialize(self, setup: Setup) -> None:
        self.members = setup.members
        self.view_members = setup.members

    def door(self) -> Outbox:
        return Followed(self)

    # For a driver that adds a node to a gate which is already open.

    def wait_for_view(self) -> None:
        """Start frozen: this member joins later, so its initial state is not valid before its first view."""
        self.epoch = NIL

    def alone(self) -> bool:
        """See core/mutex.py."""
        return self.epoch == self.view and isinstance(self.upper, Mutex) and self.upper.alone()

    def retaken(self, times: int) -> None:
        if isinstance(self.upper, Mutex) and self.upper.inside:
            self.upper.retaken(times)

    # Requests of the user. While the gate is frozen they are only recorded; `catch_up` passes them on.

    def on_acquire(self, request: int) -> None:
        self.request = request
        self.asked = self.now
        if self.epoch == self.view:
            self.lift().on_acquire(request)

    def on_release(self, request: int) -> None:
        self.ended(request)
        if self.epoch == self.view:
            self.lift().on_release(request)

    def on_cancel(self, request: int) -> None:
        self.ended(request)
        if self.epoch == self.view:
            self.lift().on_cancel(request)

    def ended(self, request: int) -> None:
        if request == self.request:
            self.request = NIL
            self.inside = False
            self.slot = NIL

    # Messages of the protocol.

    def send_down(self, dst: int, msg: Message) -> None:
        self.out.send(dst, Dated(self.epoch, msg))

    def on_dated(self, src: int, m: Dated) -> None:
        if m.epoch > self.epoch:
            self.early.append((src, m))
        elif m.epoch == self.epoch == self.view:
            self.lift().on_message(src, m.inner)
        else:
            self.out.note("a message of an old epoch was refused")

    # A new view.

    def on_view(self, number: int, members: tuple[int, ...]) -> None:
        if number <= self.view:
            return
        self.view = number
        self.view_members = tuple(members)
        self.answers = {member: answer for member, answer in self.answers.items() if answer.view >= number}
        if self.me in members:
            self.answered = self.request
            waited = self.now - self.asked if self.request != NIL else 0
            self.tell(self.leader(), Answer(number, self.request, self.inside, self.slot, waited))
        elif self.inside:
            request = self.request
            self.ended(request)
            self.out.lost(request, "this peer was excluded from the membership")

    def leader(self) -> int:
        return self.view_members[0]

    def tell(self, member: int, msg: Message) -> None:
        """Send, or deliver at once if the receiver is this node itself."""
        if member == self.me:
            self.on_message(self.me, msg)
        else:
            self.out.send(member, msg)

    def on_answer(self, src: int, m: Answer) -> None:
        known = self.answers.get(src)
        if m.view < self.view or (known is not None and known.view > m.view):
            self.out.note("an answer came too late")
            return
        self.answers[src] = m  # if it belongs to a later view, this view will never be complete
        if all(member in self.answers and self.answers[member].view == self.view for member in self.view_members):
            self.regenerate()

    def regenerate(self) -> None:
        answers = {member: self.answers[member] for member in self.view_members}
        game = Game(self.make, self.setup, self.view, answers)
        # Keep answers to later views: their senders will not send them again.
        self.answers = {member: answer for member, answer in self.answers.items() if answer.view > self.view}
        for member in self.view_members:
            self.tell(member, game.install(member))

    def on_install(self, m: Install) -> None:
        if m.view != self.view or self.epoch == self.view:
            return
        self.epoch = m.view
        self.members = m.members
        self.upper = self.make(self.me, epoch_setup(self.setup, m.view, m.members), self.door())
        self.lift().load(m.node)
        self.catch_up(m)
        early = [one for one in self.early if one[1].epoch >= self.epoch]
        self.early = []
        for src, dated in early:
            self.on_dated(src, dated)

    def catch_up(self, m: Install) -> None:
        """Apply what the user did since the Answer was sent."""
        if self.answered not in (NIL, self.request):
            self.lift().on_cancel(self.answered)  # if it is inside, this releases it
        elif m.granted:
            self.let_in(m.slot, m.fence)
        if self.request not in (NIL, self.answered):
            self.lift().on_acquire(self.request)

    def let_in(self, slot: int, fence: int) -> None:
        self.inside = True
        self.slot = slot
        self.out.granted(self.request, slot, fence)

    # The state.

    def asked_key(self) -> int:
        """The waiting time so far, because a key must be valid on any clock."""
        return self.now - self.asked if self.request != NIL else 0

    def load_asked(self, waited: int) -> None:
        self.asked = self.now - waited

    def loaded(self) -> None:
        self.upper = self.make(self.me, epoch_setup(self.setup, self.epoch, self.members), self.door())

    def tokens(self) -> int:
        """A frozen gate has no tokens: the census creates new ones."""
        return self.upper.tokens() if self.epoch == self.view else 0

    def coordinators(self) -> int:
        return self.upper.coordinators() if self.epoch == self.view else 0


@typed
class Followed(Down):
    """The upper node's outbox: it keeps track of grants and losses."""

    regenerate: Regenerate

    def __init__(self, layer: Regenerate) -> None:
        Down.__init__(self, layer)
        self.regenerate = layer

    def granted(self, request: int, slot: int, fence: int) -> None:
        self.regenerate.let_in(slot, fence)

    def lost(self, request: int, why: str) -> None:
        self.regenerate.ended(request)
        self.regenerate.out.lost(request, why)


def epoch_setup(setup: Setup, epoch: int, members: tuple[int, ...]) -> Setup:
    """The setup of this epoch. Its fences are higher than those of all earlier epochs."""
    if epoch == 0:
        return setup
    return Setup(members, setup.k, members[0], setup.epoch + epoch, setup.options)


class Game:
    """The leader's simulation of a whole gate, run until no message is in flight."""

    def __init__(self, make: MakeNode, setup: Setup, view: int, answers: dict[int, Answer]) -> None:
        self.view = view
        self.members = in_slot_order(setup.k, answers)
        whole = epoch_setup(setup, view, self.members)
        self.outboxes = {member: Collected(first) for member in self.members}
        self.nodes: dict[int, Node] = {member: make(member, whole, self.outboxes[member]) for member in self.members}
        self.flight: deque[tuple[int, int, Message]] = deque()
        self.grants: dict[int, tuple[int, int]] = {}  # member -> slot and fence
        self.play(answers)

    def play(self, answers: dict[int, Answer]) -> None:
        for member in self.members:
            self.nodes[member].on_start()
            self.collect(member)
        inside = [member for member in self.members if answers[member].inside]
        waiting = [member for member in self.members if answers[member].request != NIL and member not in inside]
        places = [member for member in self.members[: self.last_slot(answers) + 1] if member not in inside]
        for member in self.members:
            if member in inside or member in places:
                self.take_place(member, answers[member])
        for member in places:
            self.do(member, "on_release", PLACE)
        for member in longest_first(answers, waiting):
            self.synchronise(member)
            self.do(member, "on_acquire", answers[member].request)

    def synchronise(self, member: int) -> None:
        """Tell the member the latest logical time, so that its request is later than all before it."""
        node = self.nodes[member]
        if isinstance(node, Mutex):
            node.hear_time(max([one.logical_time() for one in self.nodes.values() if isinstance(one, Mutex)]))

    def last_slot(self, answers: dict[int, Answer]) -> int:
        return max([answer.slot for answer in answers.values() if answer.inside], default=NIL)

    def take_place(self, member: int, answer: Answer) -> None:
        """Let the member enter its slot. Slots are granted in order, so a free slot below an occupied one gets a
        placeholder, which `play` releases afterwards."""
        self.do(member, "on_acquire", answer.request if answer.inside else PLACE)
        slot, _ = self.grants.pop(member, (NIL, NIL))
        if answer.inside:
            assert slot == answer.slot, f"{member} is in slot {answer.slot}, but was given {slot}"

    def do(self, member: int, call: str, request: int) -> None:
        getattr(self.nodes[member], call)(request)
        self.collect(member)
        while self.flight:
            src, dst, msg = self.flight.popleft()
            self.nodes[dst].on_message(src, msg)
            self.collect(dst)

    def collect(self, member: int) -> None:
        for effect in self.outboxes[member].drain():
            if effect[0] == "send":
                self.flight.append((member, effect[1], effect[2]))
            elif effect[0] == "granted":
                self.grants[member] = (effect[2], effect[3])

    def install(self, member: int) -> Install:
        slot, fence = self.grants.get(member, (NIL, NIL))
        return Install(self.view, self.members, self.nodes[member].key(), member in self.grants, slot, fence)


def first(n: int) -> int:
    """A chooser for the simulation, where any choice will do."""
    return 0


def longest_first(answers: dict[int, Answer], members: list[int]) -> list[int]:
    return sorted(members, key=lambda member: (-answers[member].waited, member))


def in_slot_order(k: int, answers: dict[int, Answer]) -> tuple[int, ...]:
    """The members in an order that puts the holder of slot s at index s, because token s starts at member s.

    Others follow by how long they have waited: some protocols serve waiters in the order of the members.
    """
    holders = {answer.slot: member for member, answer in answers.items() if answer.inside and answer.slot != NIL}
    others = deque(longest_first(answers, [member for member in answers if member not in holders.values()]))
    ordered = [holders[slot] if slot in holders else others.popleft() for slot in range(k)]
    return (*ordered, *others)
