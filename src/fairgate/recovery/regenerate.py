"""A gate that goes on when peers die: a census under a new epoch (FK section 5, made simple).

Theory of operation. Whoever drives the nodes tells all members of every change of the membership, as numbered
views in one agreed order (`on_view`). A new view freezes the gate: nobody is let in, and what was under way is
forgotten, tokens and all. Every member tells the *leader*, the first of the view, where it stands: inside and in
which slot, or waiting and since how long by its own clock, or neither. When the leader has heard from all, it makes the
protocol anew, under an epoch that is the view's number: it plays a whole gate by itself, with a fresh node for each
member. Those inside ask first and get their slots, then those who wait ask, the longest waiting first, and
every message is delivered until all is quiet. What comes out is a state that the protocol itself might have reached,
with the same people inside and the queue in its old order. Each member is sent its node of that game (`Install`) and
goes on from there. So nothing here knows any one protocol, and no protocol knows of this.

Safety. Old messages carry their epoch and are refused. Whoever is inside stays inside, in its slot, and every later
grant of that slot has a fence of the new epoch, past all older ones. A member that is not in the new view has lost its
permit; views leave nobody out before that is over (the driver's part). A leader that dies midway leaves another view,
and so another epoch. Assumed: the channels between members lose nothing, and a view has at least k members.
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
    """A message of the protocol, and the epoch in which it counts."""

    epoch: int
    inner: Message

    def tokens(self) -> int:
        return self.inner.tokens()

    def coordinators(self) -> int:
        return self.inner.coordinators()


@message("rg.answer")
class Answer(Message):
    """In this view: my request is `request` (NIL: none), I am inside in `slot` or not, and have waited so long."""

    view: int
    request: int
    inside: bool
    slot: int
    waited: int


@message("rg.install")
class Install(Message):
    """This is your node in the epoch of this view, whose setup has these members; and you may have come in by it."""

    view: int
    members: Ids
    node: Key
    granted: bool
    slot: int
    fence: int


PLACE = 0  # a request of the leader's game alone


@node
class Regenerate(Layer):
    """Carries a node of a protocol that knows nothing of dying peers. The protocol must not go by the clock."""

    make: Fixed[Any]  # a MakeNode
    epoch: int = 0  # the view whose epoch the protocol is in
    members: Ids  # of that epoch, in the order of its setup
    view: int = 0  # the last that came; frozen while it is not the epoch
    view_members: Ids
    request: int = NIL  # the one that waits or is inside, as people see it
    asked: int = 0  # when
    inside: bool = False
    slot: int = NIL
    answered: int = NIL  # the request that this view's answer spoke of
    answers: dict[int, Answer] = {}  # to the leader, by member: of this view or a later one
    early: list[tuple[int, Dated]] = []  # messages of an epoch that has not come here yet

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.make = upper
        Layer.__init__(self, me, setup, out, upper)
        assert not self.upper.timed, "a protocol that goes by the clock cannot be made anew in no time"

    def initialize(self, setup: Setup) -> None:
        self.members = setup.members
        self.view_members = setup.members

    def door(self) -> Outbox:
        return Followed(self)

    # For a driver whose gates have been open before.

    def wait_for_view(self) -> None:
        """A member that comes later: nothing it was made with counts before its first view."""
        self.epoch = NIL

    def is_inside(self, request: int, slot: int) -> None:
        """A member that stands for one that was let in elsewhere."""
        self.request = request
        self.inside = True
        self.slot = slot

    def alone(self) -> bool:
        """See core/mutex.py."""
        return self.epoch == self.view and isinstance(self.upper, Mutex) and self.upper.alone()

    def retaken(self, times: int) -> None:
        if isinstance(self.upper, Mutex) and self.upper.inside:
            self.upper.retaken(times)

    # What people do. While the gate is frozen it is only noted, and made up for afterwards.

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
            self.out.lost(request, "this peer was left out of the membership")

    def leader(self) -> int:
        return self.view_members[0]

    def tell(self, member: int, msg: Message) -> None:
        """Also oneself, without a message."""
        if member == self.me:
            self.on_message(self.me, msg)
        else:
            self.out.send(member, msg)

    def on_answer(self, src: int, m: Answer) -> None:
        known = self.answers.get(src)
        if m.view < self.view or (known is not None and known.view > m.view):
            self.out.note("an answer came too late")
            return
        self.answers[src] = m  # if it is of a later view, this one will never be complete
        if all(member in self.answers and self.answers[member].view == self.view for member in self.view_members):
            self.regenerate()

    def regenerate(self) -> None:
        answers = {member: self.answers[member] for member in self.view_members}
        game = Game(self.make, self.setup, self.view, answers)
        # One who comes in the next view may have answered already, and will not do so again.
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
        """What people did since the answer."""
        if self.answered not in (NIL, self.request):
            self.lift().on_cancel(self.answered)  # which is a release, if it is inside
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
        """How long it has waited: a key outlives its clock."""
        return self.now - self.asked if self.request != NIL else 0

    def load_asked(self, waited: int) -> None:
        self.asked = self.now - waited

    def loaded(self) -> None:
        self.upper = self.make(self.me, epoch_setup(self.setup, self.epoch, self.members), self.door())

    def tokens(self) -> int:
        """Of a frozen gate none are left: they will be made anew."""
        return self.upper.tokens() if self.epoch == self.view else 0

    def coordinators(self) -> int:
        return self.upper.coordinators() if self.epoch == self.view else 0


@typed
class Followed(Down):
    """Grants and losses are noted on their way out."""

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
    """The setup of this epoch: its fences are past those of all earlier ones."""
    if epoch == 0:
        return setup
    return Setup(members, setup.k, members[0], setup.epoch + epoch, setup.options)


class Game:
    """The leader's game: a whole gate in one place, played until all is quiet."""

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
        for member in sorted(waiting, key=lambda member: (-answers[member].waited, member)):
            self.do(member, "on_acquire", answers[member].request)

    def last_slot(self, answers: dict[int, Answer]) -> int:
        return max([answer.slot for answer in answers.values() if answer.inside], default=NIL)

    def take_place(self, member: int, answer: Answer) -> None:
        """Slots are given in their order; so where one is free below one that is not, its place is taken meanwhile."""
        self.do(member, "on_acquire", answer.request if answer.inside else PLACE)
        slot, _ = self.grants.pop(member, (NIL, NIL))
        if answer.inside:
            assert slot == answer.slot, f"{member} is in slot {answer.slot}, and was given {slot}"

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
    """Any choice is as good as another in a game."""
    return 0


def in_slot_order(k: int, answers: dict[int, Answer]) -> tuple[int, ...]:
    """Tokens start at the first k members: whoever is inside in slot s comes at place s."""
    holders = {answer.slot: member for member, answer in answers.items() if answer.inside and answer.slot != NIL}
    others = deque([member for member in sorted(answers) if member not in holders.values()])
    ordered = [holders[slot] if slot in holders else others.popleft() for slot in range(k)]
    return (*ordered, *others)
