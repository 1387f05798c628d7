"""Mutants of the census with excluded members that live. tests/check/test_exclusions.py must catch each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.message import Message
from fairgate.recovery.census import Answer, Dated, Install, Trail
from fairgate.recovery.regenerate import Regenerate


def changed(answer: Answer, **values: Any) -> Answer:
    names = ("view", "request", "inside", "slot", "fence", "waited", "seen", "epoch", "sure", "trail")
    return Answer(*[values.get(name, getattr(answer, name)) for name in names])


class GivesAll(Regenerate):
    """Grants every slot, whoever may have it."""

    def certain(self, answers: dict[int, Answer]) -> set[int]:
        return set(range(self.setup.k))


class ForgetsGhosts(Regenerate):
    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        Regenerate.on_view(self, number, members, ())


class CountsOneGhostLess(Regenerate):
    """Without tokens, one permit is withheld for each ghost."""

    def on_view(self, number: int, members: tuple[int, ...], ghosts: tuple[int, ...]) -> None:
        Regenerate.on_view(self, number, members, ghosts[1:])


class CountsMessagesToGhosts(Regenerate):
    """Takes a token that was sent to an excluded member for one that is under way between survivors."""

    def trail_now(self) -> Trail:
        return tuple([(slot, hops, self.me) for slot, hops, _ in Regenerate.trail_now(self)])


class DoesNotCountHops(Regenerate):
    """Takes any member that ever sent or had the token for the last."""

    def trail_now(self) -> Trail:
        return tuple([(slot, 0, where) for slot, _, where in Regenerate.trail_now(self)])


class DoesNotFollow(Regenerate):
    """Counts again from 1 when it sends a token that came with a higher count."""

    def follow(self, m: Dated) -> None:
        pass


class KeepsTheTrail(Regenerate):
    """Speaks of tokens of an earlier epoch."""

    def on_install(self, src: int, m: Install) -> None:
        trail = dict(self.trail)
        Regenerate.on_install(self, src, m)
        self.trail = {**trail, **self.trail}


class MixesSlots(Regenerate):
    """Knows how many slots are certain, but not which."""

    def certain(self, answers: dict[int, Answer]) -> set[int]:
        return set(range(len(Regenerate.certain(self, answers))))


class ForgetsWithheldSlots(Regenerate):
    """Takes the slots that its epoch lacks for free."""

    def on_install(self, src: int, m: Install) -> None:
        Regenerate.on_install(self, src, m)
        self.withheld_for = ()


class AlwaysSure(Regenerate):
    """Does not see that an excluded leader may have begun an epoch."""

    def tell(self, member: int, msg: Message) -> None:
        Regenerate.tell(self, member, changed(msg, sure=True) if isinstance(msg, Answer) else msg)


class MixesEpochs(Regenerate):
    """Counts tokens of different epochs together."""

    def certain(self, answers: dict[int, Answer]) -> set[int]:
        same = {
            member: changed(answer, epoch=self.epoch if answer.epoch != NIL else NIL)
            for member, answer in answers.items()
        }
        return Regenerate.certain(self, same)


class DoesNotRenameSlots(Regenerate):
    """Grants the protocol's slot, not the gate's."""

    def let_in(self, slot: int, fence: int) -> None:
        Regenerate.let_in(self, self.epoch_slots.index(slot) if slot != NIL else NIL, fence)


class WaitsForNobody(Regenerate):
    """Finishes a census without the others' answers."""

    def begin_census(self, before: tuple[int, ...]) -> None:
        Regenerate.begin_census(self, before)
        self.awaited = set()


class ForgetsLateNewcomers(Regenerate):
    def answer_newcomer(self, member: int) -> None:
        pass


# How a run begins, as (action, node); "*": everything arrives. The token is at 1, and idle.
HAD = (("acquire", 1), ("*", 0), ("release", 1), ("*", 0))
# 2 is excluded, and 0, which leads, has made the gate anew. 1 has answered, but does not know the new epoch.
LED = (*HAD, ("exclude", 2), ("view", 0), ("view", 1), ("message", 0))
# 3 has had the token before 1, and is excluded.
OUT = (("acquire", 3), ("*", 0), ("release", 3), *HAD, ("exclude", 3), ("view", 0), ("view", 1), ("view", 2))
# 2 is inside, in the new epoch, and excluded too. 1 does not know the new epoch, or does.
IN_2 = (("acquire", 2), ("message", 0), ("message", 2), ("exclude", 2))
HALF = (*OUT, ("message", 0), ("message", 0), ("message", 2), *IN_2)
WHOLE = (*OUT, ("*", 0), *IN_2)


@dataclass(frozen=True)
class Mutant:
    layer: type[Regenerate]
    protocol: str = "naimi_trehel"
    breaks: str = "k"
    before: tuple[tuple[str, int], ...] = ()
    bounds: dict[str, Any] = field(default_factory=dict)


MUTANTS = (
    Mutant(GivesAll, bounds={"nodes": 2}),
    Mutant(ForgetsGhosts, bounds={"nodes": 2}),
    Mutant(CountsOneGhostLess, "ricart_agrawala", bounds={"nodes": 2}),
    Mutant(CountsMessagesToGhosts),
    Mutant(DoesNotCountHops),
    Mutant(DoesNotFollow),
    Mutant(KeepsTheTrail, before=WHOLE, bounds={"nodes": 4, "exclusions": 2, "requests": 2}),
    Mutant(MixesSlots, "centralised", "slot", bounds={"k": 2}),
    Mutant(ForgetsWithheldSlots, "centralised", "slot", bounds={"k": 2, "exclusions": 2}),
    Mutant(AlwaysSure, before=LED, bounds={"exclusions": 2, "requests": 2}),
    Mutant(MixesEpochs, before=HALF, bounds={"nodes": 4, "exclusions": 2, "requests": 2}),
    Mutant(DoesNotRenameSlots, "centralised", "slot", bounds={"k": 2}),
    Mutant(WaitsForNobody),
    Mutant(ForgetsLateNewcomers, breaks="liveness", bounds={"exclusions": 0, "joins": 1}),
)
