"""A layer that rebuilds a gate when the membership changes: a census under a new epoch (a simpler FK section 5).

Theory of operation. The driver reports every membership change to all members, as numbered views in one agreed order
(`on_view`). A new view freezes the gate: nobody is let in, and the protocol's state is discarded, including tokens and
messages in flight. Every member tells the *leader*, the first member of the view, its situation: inside and in which
slot, waiting and for how long by its own clock, or neither. When the leader has heard from all, it rebuilds the
protocol under a new epoch, the number of the view: it plays a whole gate by itself (rebuild.py) until the same members
are inside and the queue has the same order, and sends each member its node of that game (`Install`). So this layer
works with any protocol, and no protocol knows about it.

Newcomers, members that the leader did not know in the view before, are not inside, and the leader does not wait for
their answers: a newcomer that did not answer in time gets its node when it does. Install says which request was
counted; the receiver makes up for what its user did since.

Ghosts are members that were excluded, but may still be alive and go on in their old epoch: be inside, pass a token on,
or receive one, until their lease is over. While there are any, the new epoch has only the slots that no ghost can have:
those of members that are inside, and those whose token the survivors can account for (census.py). The other slots are
*withheld* until a view without those ghosts. A protocol without tokens withholds one permit for each ghost. If nothing
is left, the gate stays frozen.

Safety. Messages carry their epoch, and old ones are refused. A member that is inside stays inside, in its slot, and
every later grant of that slot has a fence of the new epoch, higher than all older ones. A member that is in the new
view neither as a member nor as a ghost has lost its permit: the driver must not forget it before its lease is over. If
the leader dies during a census, another view follows, and so another epoch. Assumptions: the channels between members
are reliable, and a seat that has left the gate never returns with its old node.
"""

from typing import Any

from fairgate.core.declare import Fixed, Ids, node, typed
from fairgate.core.ids import NIL
from fairgate.core.layers import Down, Layer, MakeNode
from fairgate.core.message import Message
from fairgate.core.mutex import Mutex
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.recovery.census import (
    Answer,
    Dated,
    Install,
    Slots,
    Survey,
    Trail,
    front_of,
    in_order,
    is_common,
    places_of_tokens,
    set_of,
)
from fairgate.recovery.rebuild import Game, epoch_setup

MOST_EARLY = 100_000  # messages or answers that belong to a later epoch or view: a flood must not fill memory
NOT_COUNTED = "another member has this slot, with a higher fence"
EXCLUDED = "this peer was excluded from the membership"


@node
class Regenerate(Layer):
    """Carries a node of a protocol that cannot handle crashes. The protocol must not be timed."""

    make: Fixed[Any]  # a MakeNode
    member_set: Fixed[Any]  # the members of the view, as a set
    # The epoch of the protocol's node.
    epoch: int = 0  # the number of its view; NIL: none yet
    members: Ids  # in the order of its setup
    epoch_slots: Slots  # the gate's slots that are in this epoch: the protocol's slot i is epoch_slots[i]
    withheld_for: Ids = ()  # the ghosts that may have the others
    trail: dict[int, tuple[int, int]] = {}  # the protocol's slot -> how often its token was sent, and where it went
    sure: bool = True  # is every member that led a census since then, and got an answer from here, still a member?
    leaders: Ids = ()  # those members
    # The latest view. The gate is frozen while it differs from the epoch.
    view: int = 0
    view_members: Ids
    ghosts: Ids = ()
    seen: int = 0  # the view before that was known here
    # The user.
    request: int = NIL  # that is waiting or inside
    asked: int = 0  # time of that request
    inside: bool = False
    slot: int = NIL
    fence: int = NIL
    # The leader.
    answers: dict[int, Answer] = {}  # by member: to this view or a later one
    awaited: set[int] = set()  # members whose answer to this view the census needs
    newcomers: Ids = ()  # members whose answer it does not need
    decided: int = 0  # the last view whose census is over
    installs: dict[int, Install] = {}  # of newcomers that have not answered
    # Messages of an epoch that has not begun here.
    early: list[tuple[int, Dated]] = []

    def __init__(self, me: int, setup: Setup, out: Outbox, upper: MakeNode) -> None:
        self.make = upper
        Layer.__init__(self, me, setup, out, upper)
        assert not self.upper.timed, "a timed protocol cannot be rebuilt: the simulation takes no time"

    def initialize(self, setup: Setup) -> None:
        self.members = setup.members
        self.view_members = setup.members
        self.member_set = set_of(setup.members)
        self.epoch_slots = tuple(range(setup.k))

    def door(self) -> Outbox:
        return Followed(self)

    # For a driver that adds a node to a gate which is already open.

    def wait_for_view(self) -> None:
        """Start frozen: this member joins later, so its initial state is not valid before its first view."""
        self.epoch = NIL
        self.trail = {}
        if self.view == 0:
            self.view_members = ()

    def alone(self) -> bool:
        """See core/mutex.py."""
        return self.epoch == self.view and isinstance(self.upper, Mutex) and self.upper.alone()

    def retaken(self, times: int) -> None:
        if isinstance(self.upper, Mutex) and self.upper.inside:
            self.upper.retaken(times)
            self.fence += times

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

    def on_again(self, released: int, request: int) -> None:
        self.ended(released)
        self.request, self.asked = request, self.now
        if self.epoch == self.view:
            self.lift().on_again(released, request)

    def on_cancel(self, request: int) -> None:
        self.ended(request)
        if self.epoch == self.view:
            self.lift().on_cancel(request)

    def ended(self, request: int) -> None:
        if request == self.request:
            self.request = NIL
            self.inside = False
            self.slot = NIL
            self.fence = NIL

    # Messages of the protocol.

    def send_down(self, dst: int, msg: Message) -> None:
        hops: tuple[int, ...] = ()
        for slot in msg.slots():
            sent = self.trail[slot][0] + 1 if slot in self.trail else 1
            self.trail[slot] = (sent, dst)
            hops += (sent,)
        self.out.send(dst, Dated(self.epoch, hops, msg))

    def on_dated(self, src: int, m: Dated) -> None:
        if m.epoch > self.epoch:
            self.keep_early(src, m)
        elif m.epoch == self.epoch == self.view:
            if src not in self.member_set:
                raise ValueError(f"a message of epoch {m.epoch} came from {src}, which is no member")
            self.follow(m)
            self.lift().on_message(src, m.inner)
        else:
            self.out.note("a message of an old epoch was refused")

    def follow(self, m: Dated) -> None:
        """Remember where the tokens in this message are: here."""
        slots: tuple[int, ...] = m.inner.slots()
        if len(slots) != len(m.hops):
            raise ValueError(f"a message with {len(slots)} tokens has {len(m.hops)} counts of them")
        for slot, sent in zip(slots, m.hops, strict=True):
            if not 0 <= slot < len(self.epoch_slots):
                raise ValueError(f"a message brings the token of slot {slot}: there are {len(self.epoch_slots)}")
            self.trail[slot] = (sent, self.me)

    def keep_early(self, src: int, m: Dated) -> None:
        if len(self.early) >= MOST_EARLY:
            raise ValueError(f"more than {MOST_EARLY} messages came for epochs that have not begun")
        self.early.append((src, m))

    # A new view.

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        if number <= self.view:
            return
        before = self.view_members
        self.seen = self.view
        self.view = number
        self.view_members = tuple(members)
        self.member_set = set_of(self.view_members)
        self.ghosts = tuple(ghosts)
        self.installs = {}
        self.early = [one for one in self.early if one[1].epoch >= number]
        self.sure = self.sure and self.member_set.issuperset(self.leaders)
        if self.me in self.member_set:
            self.begin_census(before)
            self.answer()
        else:
            self.leave_gate()

    def leave_gate(self) -> None:
        """This view is without this member. If it ever returns, it knows nothing."""
        self.epoch = NIL
        self.trail = {}
        self.answers = {}
        if self.inside:
            request = self.request
            self.ended(request)
            self.out.lost(request, EXCLUDED)

    def leader(self) -> int:
        return self.view_members[0]

    def answer(self) -> None:
        waited = self.now - self.asked if self.request != NIL else 0
        leader = self.leader()
        told = Answer(
            self.view, self.request, self.inside, self.slot, self.fence, waited,
            self.seen, self.epoch, self.sure, self.trail_now(),
        )  # fmt: skip
        if leader not in self.leaders:
            self.leaders = (*self.leaders, leader)
        self.tell(leader, told)

    def trail_now(self) -> Trail:
        """Where the tokens of this epoch are, as far as this member knows."""
        if self.epoch == NIL:
            return ()
        here = self.upper.slots()
        gone = [(slot, sent, where) for slot, (sent, where) in sorted(self.trail.items()) if slot not in here]
        return (*[(slot, self.trail.get(slot, (0, NIL))[0], self.me) for slot in sorted(here)], *gone)

    def tell(self, member: int, msg: Message) -> None:
        """Send, or deliver at once if the receiver is this node itself."""
        if member == self.me:
            self.on_message(self.me, msg)
        else:
            self.out.send(member, msg)

    # The leader's census.

    def begin_census(self, before: Ids) -> None:
        """Answers that came before the view are counted. A leader that knew no view before waits for everyone."""
        leads = self.leader() == self.me
        self.answers = {
            member: answer
            for member, answer in self.answers.items()
            if answer.view > self.view or (leads and answer.view == self.view and member in self.member_set)
        }
        self.awaited = set()
        self.newcomers = ()
        if leads:
            known = set_of(before) if self.me in before else self.member_set
            self.newcomers = tuple([member for member in self.view_members if member not in known])
            self.awaited = {member for member in self.view_members if member in known}
            for member, answer in list(self.answers.items()):
                if answer.view == self.view:
                    self.count(member, answer)

    def census_over(self) -> bool:
        """As the leader: has this view's census ended? If slots are withheld, it has ended without them."""
        return self.leader() != self.me or self.decided == self.view

    def on_answer(self, src: int, m: Answer) -> None:
        m.check(self.setup.k)
        known = self.answers.get(src)
        if m.view < self.view or (known is not None and known.view > m.view):
            self.out.note("an answer came too late")
        elif m.view > self.view:
            if known is None and len(self.answers) >= MOST_EARLY:
                raise ValueError(f"more than {MOST_EARLY} answers came for views that have not begun")
            self.answers[src] = m  # this view will never be complete
        elif src not in self.member_set or self.leader() != self.me:
            raise ValueError(f"{src} answered view {m.view} to {self.me}: it is no member, or this is not the leader")
        elif self.decided == self.view:
            self.answer_newcomer(src)
        else:
            self.answers[src] = m
            self.count(src, m)
            if not self.awaited:
                self.regenerate()

    def count(self, member: int, answer: Answer) -> None:
        self.awaited.discard(member)
        if answer.seen > self.seen and self.newcomers:
            # It knows a view that the leader does not, in which members that are new to the leader may have entered.
            self.awaited |= {one for one in self.newcomers if one not in self.answers}
            self.newcomers = ()

    def answer_newcomer(self, member: int) -> None:
        install = self.installs.pop(member, None)
        if install is not None:
            self.tell(member, install)

    def regenerate(self) -> None:
        """All answers are there."""
        answers = {one: answer for one, answer in self.answers.items() if answer.view == self.view}
        self.answers = {one: answer for one, answer in self.answers.items() if answer.view > self.view}
        self.decided = self.view
        survey = Survey(self.setup.k, self.has_tokens(), self.view_members, answers)
        slots = survey.slots(self.ghosts, self.certain(answers))
        if not slots:
            self.out.note("every slot is withheld")
            return
        if len(slots) < self.setup.k:
            self.out.note("a slot is withheld")
        for member, install in self.rebuilt(survey, slots).items():
            if member in answers:
                self.tell(member, install)
            else:
                self.installs[member] = install

    def has_tokens(self) -> bool:
        return isinstance(self.upper, Mutex) and self.upper.about.slots

    def certain(self, answers: dict[int, Answer]) -> set[int]:
        """The slots that no ghost can have."""
        new = set(self.newcomers)
        old = {member: answer for member, answer in answers.items() if member not in new}
        if not is_common(self.epoch, list(old.values())):
            return set()
        places = places_of_tokens(self.epoch, list(old.values()))
        # A seat that was given up and taken again has a new node, which does not know where the old one's tokens went.
        there = {member for member, answer in old.items() if answer.epoch == self.epoch}
        found = {slot for i, slot in enumerate(self.epoch_slots) if places.get(i, NIL) in there}
        if set(self.withheld_for).isdisjoint(self.ghosts):
            found |= set(range(self.setup.k)) - set(self.epoch_slots)
        return found

    def rebuilt(self, survey: Survey, slots: Slots) -> dict[int, Install]:
        """The nodes of all members in the new epoch."""
        by_wait = isinstance(self.upper, Mutex) and self.upper.about.serves_in_order
        front = front_of(survey, slots, by_wait)
        setup = epoch_setup(self.setup, self.view, in_order(front, self.view_members), len(slots))
        waiting = survey.waiting()
        requests = {member: survey.answers[member].request for member in [*survey.inside, *waiting]}
        game = Game(self.make, setup, requests)
        game.play({one: slots.index(slot) if slot != NIL else NIL for one, slot in survey.inside.items()}, waiting)
        found = {}
        for member in self.view_members:
            slot, fence = game.grants.get(member, (NIL, NIL))
            found[member] = Install(
                self.view, front, slots, game.nodes[member].key(), requests.get(member, NIL),
                member in game.grants, slots[slot] if slot != NIL else NIL, fence,
            )  # fmt: skip
        return found

    # The new epoch.

    def on_install(self, src: int, m: Install) -> None:
        if m.view < self.view or self.epoch == self.view:
            return
        if m.view > self.view or src != self.leader():
            raise ValueError(f"{src} began epoch {m.view} in view {self.view}: only its leader can")
        m.check(self.view_members, self.setup.k)
        self.upper = self.loaded_node(m)
        self.epoch = m.view
        self.members = self.upper.setup.members
        self.epoch_slots = m.epoch_slots
        self.withheld_for = self.ghosts
        self.trail = {}
        self.sure = True
        self.leaders = ()
        self.catch_up(m)
        early = [one for one in self.early if one[1].epoch >= self.epoch]
        self.early = []
        for sender, dated in early:
            if dated.epoch > self.epoch or sender in self.member_set:
                self.on_dated(sender, dated)

    def loaded_node(self, m: Install) -> Any:
        """The node of an Install. Raises ValueError if its key is not one of this protocol."""
        members = in_order(m.front, self.view_members)
        node = self.make(self.me, epoch_setup(self.setup, m.view, members, len(m.epoch_slots)), self.door())
        if [type(part) for part in m.node] != [type(part) for part in node.key()]:
            raise ValueError(f"epoch {m.view} begins with a node that is not one of this protocol")
        try:
            node.load(m.node)
        except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError) as wrong:
            raise ValueError(f"epoch {m.view} begins with a node that cannot be loaded: {wrong}") from wrong
        return node

    def catch_up(self, m: Install) -> None:
        """Apply what the user did since the Answer that was counted, if any was."""
        if self.inside and m.request != self.request:
            request = self.request
            self.ended(request)
            self.out.lost(request, NOT_COUNTED)
        if m.request not in (NIL, self.request):
            self.lift().on_cancel(m.request)  # if it is inside, this releases it
        elif m.granted and not self.inside:
            self.let_in(m.slot, m.fence)
        if self.request not in (NIL, m.request):
            self.lift().on_acquire(self.request)

    def let_in(self, slot: int, fence: int) -> None:
        self.inside = True
        self.slot = slot
        self.fence = fence
        self.out.granted(self.request, slot, fence)

    # The state.

    def asked_key(self) -> int:
        """The waiting time so far, because a key must be valid on any clock."""
        return self.now - self.asked if self.request != NIL else 0

    def load_asked(self, waited: int) -> None:
        self.asked = self.now - waited

    def loaded(self) -> None:
        self.member_set = set_of(self.view_members)
        setup = epoch_setup(self.setup, self.epoch, self.members, len(self.epoch_slots))
        self.upper = self.make(self.me, setup, self.door())

    def slots(self) -> tuple[int, ...]:
        """A frozen gate has no tokens: the census creates new ones."""
        return self.upper.slots() if self.epoch == self.view else ()

    def tokens(self) -> int:
        return len(self.slots())

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
        layer: Regenerate = self.regenerate
        layer.let_in(layer.epoch_slots[slot] if slot != NIL else NIL, fence)

    def lost(self, request: int, why: str) -> None:
        self.regenerate.ended(request)
        self.regenerate.out.lost(request, why)
