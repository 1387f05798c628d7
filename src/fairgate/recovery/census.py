"""The messages of a census, and what its leader concludes from them: who is inside, and which slots are certain.

Which slots the excluded may have. Tokens leave a trail: whenever a token is sent, the message carries how often that
token has been sent in this epoch, and both ends remember the last number they saw. The highest number that any survivor
knows says where the token went last, as far as survivors know. If that is a survivor which was in this epoch, the token
is there, or on its way there, and no excluded member has it. Otherwise the slot is *withheld*. This holds only if all
survivors speak of the same epoch, and if none of them has answered a census since whose leader is no survivor: that
leader may have finished it, and so begun an epoch that no survivor knows.
"""

from collections import deque

from fairgate.core.declare import Ids, message
from fairgate.core.ids import NIL
from fairgate.core.message import Key, Message

Trail = tuple[tuple[int, int, int], ...]  # (index of the slot in its epoch, how often it was sent, where it went)
Slots = tuple[int, ...]


@message("rg.message")
class Dated(Message):
    """A message of the protocol, with its epoch, and for each token in it how often that has been sent."""

    epoch: int
    hops: tuple[int, ...]
    inner: Message

    def tokens(self) -> int:
        return self.inner.tokens()

    def slots(self) -> tuple[int, ...]:
        return self.inner.slots()

    def coordinators(self) -> int:
        return self.inner.coordinators()


@message("rg.situation")
class Answer(Message):
    """The sender's situation in this view: its request (NIL: none), is it inside, its slot, fence and waiting time.

    `seen` is the view that it knew before this one, `epoch` the one in which its node was (NIL: none yet). `sure` says
    that no epoch can have begun since that the members of this view do not know. `trail` says where tokens went.
    """

    view: int
    request: int
    inside: bool
    slot: int
    fence: int
    waited: int
    seen: int
    epoch: int
    sure: bool
    trail: Trail

    def check(self, k: int) -> None:
        """Raise ValueError if no member can be in this situation."""
        if self.request < NIL or self.request == 0 or self.waited < 0 or (self.inside and self.request == NIL):
            raise ValueError(
                f"a census answer names request {self.request}, inside {self.inside}, waited {self.waited}"
            )
        if not NIL <= self.slot < k:
            raise ValueError(f"a census answer names slot {self.slot}: there are 0..{k - 1}")


@message("rg.epoch")
class Install(Message):
    """The receiver's node in the epoch of this view.

    The members of its setup are `front`, then the others in the order of the view. The protocol's slot i is the gate's
    slot epoch_slots[i]. `request` is the receiver's request that was counted (NIL: none), `granted` says whether the
    census has granted it, with `slot` and `fence`.
    """

    view: int
    front: Ids
    epoch_slots: tuple[int, ...]
    node: Key
    request: int
    granted: bool
    slot: int
    fence: int

    def check(self, members: Ids, k: int) -> None:
        """Raise ValueError if these members and k permits cannot have such an epoch."""
        if not 1 <= len(self.epoch_slots) <= len(self.front) <= len(members):
            raise ValueError(
                f"an epoch with {len(self.epoch_slots)} slots and {len(members)} members names {len(self.front)}"
            )
        if len(set(self.front)) < len(self.front) or not set(self.front) <= set(members):
            raise ValueError("an epoch names a seat twice, or one that is no member")
        if len(set(self.epoch_slots)) < len(self.epoch_slots) or not set(self.epoch_slots) <= set(range(k)):
            raise ValueError(f"an epoch has slots {self.epoch_slots}: there are 0..{k - 1}")
        if self.granted and self.slot != NIL and self.slot not in self.epoch_slots:
            raise ValueError(f"a census granted slot {self.slot}, which is not in its epoch")


class Survey:
    """What the leader knows when all answers are there."""

    def __init__(self, k: int, tokens: bool, members: Ids, answers: dict[int, Answer]) -> None:
        self.k = k
        self.tokens = tokens  # does the protocol have slots?
        self.members = members
        self.answers = answers  # newcomers that did not answer are missing
        self.inside: dict[int, int] = {}  # member -> slot (NIL if the protocol has none)
        self.find_inside()

    def find_inside(self) -> None:
        """Who is inside. If two members claim a slot, the one with the lower fence has lost it."""
        best: dict[int, int] = {}  # slot -> member
        for member in self.members:
            answer = self.answers.get(member)
            if answer is None or not answer.inside:
                continue
            if not self.tokens:
                if len(self.inside) < self.k:
                    self.inside[member] = NIL
            elif answer.slot != NIL:
                other = best.get(answer.slot, NIL)
                if other == NIL or self.answers[other].fence < answer.fence:
                    best[answer.slot] = member
        for slot, member in best.items():
            self.inside[member] = slot

    def waiting(self) -> list[int]:
        """The members that wait, longest waiting first."""
        found = [
            member
            for member in self.members
            if member in self.answers and self.answers[member].request != NIL and not self.answers[member].inside
        ]
        return sorted(found, key=lambda member: (-self.answers[member].waited, member))

    def slots(self, ghosts: Ids, certain: set[int]) -> Slots:
        """The slots of the next epoch: those in use, and of the others those that no ghost may have."""
        if not self.tokens:
            most = self.k - min(len(ghosts), self.k - len(self.inside))
            return tuple(range(min(most, len(self.members))))
        used = set(self.inside.values())
        free = [slot for slot in range(self.k) if slot not in used and (not ghosts or slot in certain)]
        return tuple(sorted([*used, *free[: len(self.members) - len(used)]]))


def is_common(epoch: int, answers: list[Answer]) -> bool:
    """Do all survivors speak of this epoch, and of the latest? One that has not begun any epoch has had no token."""
    epochs = {answer.epoch for answer in answers if answer.epoch != NIL}
    return epochs == {epoch} and all(answer.sure for answer in answers)


def places_of_tokens(epoch: int, answers: list[Answer]) -> dict[int, int]:
    """Where survivors know the tokens of this epoch to have gone last, by the protocol's slots."""
    last: dict[int, tuple[int, int]] = {}
    for answer in answers:
        if answer.epoch == epoch:
            for slot, hops, where in answer.trail:
                if slot not in last or hops > last[slot][0]:
                    last[slot] = (hops, where)
    return {slot: where for slot, (_, where) in last.items()}


def front_of(survey: Survey, slots: Slots, by_wait: bool) -> Ids:
    """The first members of the next epoch: token i starts at member i, so the one inside slots[i] must be there.

    The other places go to those that have waited longest, and last to members that have not answered. `by_wait`: all
    waiting members follow in order, because the protocol serves them in the order of the members.
    """
    holders = {slot: member for member, slot in survey.inside.items() if slot != NIL}
    waiting = survey.waiting()
    taken = {*holders.values(), *waiting}
    idle = [member for member in survey.members if member not in taken]
    others = deque([*waiting, *sorted(idle, key=lambda member: member not in survey.answers)])
    front = [holders[slot] if slot in holders else others.popleft() for slot in slots]
    if by_wait:
        front += list(others)[: len(others) - len(idle)]
    return tuple(front)


def in_order(front: Ids, members: Ids) -> Ids:
    """All members of an epoch, in the order of its setup."""
    first = set(front)
    return (*front, *[member for member in members if member not in first])


LAST_SET: list[tuple[Ids, frozenset[int]]] = [((), frozenset())]


def set_of(members: Ids) -> frozenset[int]:
    """The members as a set. The last one is kept, for all seats of a peer to share; threads must not mix theirs up."""
    last = LAST_SET[0]
    if last[0] is not members:
        last = (members, frozenset(members))
        LAST_SET[0] = last
    return last[1]
