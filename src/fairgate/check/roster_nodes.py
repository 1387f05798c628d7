"""Nodes of the model of agreed rosters (check/rosters.py): they do on command what usually depends on many beats.

A node forgets what none of its later steps can depend on, so that states that differ only in that are one state. Each
line of `forget` says why. The peers here have no patience (that option is 0) and no gates.
"""

from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.message import Key
from fairgate.recovery.agreed import NO_BALLOT, Name, Value, names
from fairgate.recovery.ballots import IDLE, LEAD, PREPARE
from fairgate.recovery.views import Views


class Mute:
    """An Above to which nothing matters."""

    def adopted(self, at: int, value: Value) -> None:
        pass

    def applied(self, number: int) -> None:
        pass

    def turned_away(self) -> None:
        pass

    def denied(self, number: int, why: str) -> None:
        pass

    def excluded(self, why: str) -> None:
        pass


class Blank:
    """A Book whose content is the changes that were made. It has no gates."""

    def first(self) -> Key:
        return ()

    def changed(self, content: Key, change: Key, peer: int) -> Key:
        return (*content, (peer, change))

    def joined(self, content: Key, peer: int, about: Key) -> Key:
        return content

    def excluded(self, content: Key, peer: int) -> Key:
        return content

    def forgotten(self, content: Key, peer: int) -> Key:
        return content

    def left(self, content: Key, peer: int) -> Key:
        return content

    def concerns(self, content: Key, peer: int, change: Key) -> tuple[str, ...]:
        return ()

    def leader_of(self, content: Key, gate: str) -> int:
        return -1


def steered(views: type[Views]) -> type[Views]:
    """The class, with timers as its inputs."""

    class Steered(views):  # type: ignore[valid-type, misc]
        def __init__(self, *arguments: Any) -> None:
            self.outcasts: tuple[Name, ...] = ()
            self.wished: tuple[int, ...] = ()
            super().__init__(*arguments)
            self.oldest = self.wait  # without patience, all that is older has the same effect

        def on_timer(self, name: str) -> None:
            what, *numbers = name.split()
            peers = tuple([int(number) for number in numbers])
            if what == "exclude":
                self.outcasts = tuple(sorted({*self.outcasts, *self.members_with(peers)}))
            elif what == "voters":
                self.wished = peers
            elif what == "change":
                self.change((len(self.pending),))
            elif what == "join":
                self.on_join(peers[0])
            elif what == "leave":
                self.on_leave()
            elif what == "suspect":
                self.on_suspect(peers[0], "")
            elif what == "beat":
                self.beat()
            elif what == "take_over":
                self.take_over()
            if self.phase == LEAD:
                self.serve()
            self.finish()

        def members_with(self, peers: tuple[int, ...]) -> list[Name]:
            return [name for name in names(self.value) if name[0] in peers]

        def unreachable(self) -> list[Name]:
            found: list[Name] = super().unreachable()
            return [*found, *[name for name in self.outcasts if name in names(self.value) and name not in found]]

        def next_voters(self, members: Any) -> tuple[int, ...]:
            known = [member[0] for member in members]
            wished = tuple([voter for voter in self.wished if voter in known])
            return wished or super().next_voters(members)

        def entered(self, before: Value, wait: int) -> None:
            self.wished = ()
            super().entered(before, wait)

        def forget(self) -> None:
            self.leader_seen = NIL  # the rest of this group is for drivers and gates, of which there are none
            self.witnesses.clear()
            self.is_succeeded = False
            self.last_voters = ()
            self.told = 0
            self.viewed.clear()
            self.leads_from = 0
            self.outcasts = tuple([name for name in self.outcasts if name in names(self.value)])
            if self.phase != PREPARE:  # a later first phase begins without promises
                self.promises.clear()
            if self.phase == IDLE:  # a peer that takes over has another ballot, and asks for all requests anew
                self.ballot = NO_BALLOT
                self.asks.clear()
                self.leaving.clear()
                self.newcomers.clear()
            if not self.proposal[0]:  # the next proposal begins without votes
                self.accepts.clear()
            if self.gone and not self.is_voter:  # a peer that is excluded never has a lease again
                self.until = 0
                self.sent.clear()
                self.acked.clear()
            for times in (self.sent, self.acked):  # a beat that is older than the lease gives none
                for one in [one for one, when in times.items() if self.now - when >= self.lease]:
                    del times[one]
            for heard in self.heard.values():  # how long a suspicion lasts is compared with the patience only
                heard.suspects = dict.fromkeys(heard.suspects, self.now)

        def key(self) -> Key:
            self.forget()
            return (*super().key(), self.outcasts, self.wished)

        def load(self, key: Key) -> None:
            *own, self.outcasts, self.wished = key
            super().load(tuple(own))

    return Steered
