"""Which peers this one can reach, as far as it can tell from connections and from what they send.

A peer whose connection broke and that does not accept another one is suspected: most likely its process has ended. So
is one that does not answer at all: most likely the network between the two is cut. The views decide what follows
(recovery/leases.py). If this peer itself cannot reach a majority of the voters, it cannot let anybody in for long, and
says so.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from fairgate.arguments import SECOND
from fairgate.net.system import clock
from fairgate.recovery.agreed import majority

if TYPE_CHECKING:
    from fairgate.live.views_driver import ViewsDriver
    from fairgate.net.transport import Transport

DETECTOR = "connections"
LOOK_SECONDS = 0.1
SUSPECT_AFTER = SECOND // 4  # a peer that others cannot dial may take that long to dial again
SILENT_AFTER = 3 * SECOND // 4  # beats come every 250 ms, or more often
STALLED = SECOND // 2  # a step that comes this late: this process did not run, so the others are not to blame
SEARCH_EVERY = SECOND
TAKE_OVER_SECONDS = 0.15  # between two voters that might take over

log = logging.getLogger("fairgate.live")


class ReachOwner(Protocol):
    """What this module needs of the membership."""

    transport: "Transport"
    driver: "ViewsDriver"
    member: asyncio.Event

    def step(self, call: Callable[..., Any], *arguments: Any) -> None: ...

    def search(self) -> None:
        """Looks for the cluster elsewhere."""

    def end_search(self) -> None: ...


class Reach:
    def __init__(self, owner: ReachOwner) -> None:
        self.owner = owner
        self.down: dict[int, int] = {}  # peers whose connection broke, and when
        self.suspected: set[int] = set()
        self.why = ""  # why this peer cannot let anybody in; empty if it can
        self.looked = 0  # when the majority was last checked
        self.searched = 0  # when other addresses were last tried
        self.timer: asyncio.TimerHandle | None = None

    # Suspicions.

    def on_down(self, peer: int) -> None:
        self.down.setdefault(peer, clock())
        if self.timer is None:
            self.timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self.look)

    def on_up(self, peer: int) -> None:
        self.down.pop(peer, None)
        if peer in self.suspected:
            self.suspected.discard(peer)
            self.owner.step(self.owner.driver.views.on_trust, peer, DETECTOR)

    def only(self, known: set[int]) -> None:
        """Forgets all others: they are no longer members."""
        self.down = {peer: since for peer, since in self.down.items() if peer in known}
        self.suspected &= known

    def look(self) -> None:
        self.timer = None
        if not self.owner.member.is_set():
            return
        now = clock()
        for peer, since in sorted(self.down.items()):
            patience = SUSPECT_AFTER if self.refuses(peer) else self.owner.driver.views.patience
            if peer not in self.suspected and now - since >= patience:
                self.suspect(peer)
        if self.down:
            self.timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self.look)

    def has_ended(self, peer: int) -> bool:
        return peer not in self.owner.transport.up and self.refuses(peer)

    def refuses(self, peer: int) -> bool:
        return any(dial.peer == peer and dial.why for dial in self.owner.transport.dials)

    def suspect(self, peer: int) -> None:
        views = self.owner.driver.views
        self.suspected.add(peer)
        self.owner.step(views.on_suspect, peer, DETECTOR)
        if peer == views.leader and views.is_voter:
            others = [voter for voter in views.value[1] if voter != peer]
            delay = TAKE_OVER_SECONDS * others.index(views.me)
            asyncio.get_running_loop().call_later(delay, self.take_over_from, peer)

    def take_over_from(self, peer: int) -> None:
        """Not only after the leader was silent for a while: it is most likely dead."""
        if self.owner.member.is_set() and peer in self.suspected and self.owner.driver.views.leader == peer:
            self.owner.step(self.owner.driver.views.timer_due, "watch")

    # The majority.

    def check_majority(self) -> None:
        """Called in every step of the views, several times a second."""
        now, heard = clock(), self.owner.driver.heard
        late = now - self.looked
        if self.looked and late > STALLED:
            for peer in heard:
                heard[peer] += late
        self.looked = now
        views = self.owner.driver.views
        voters = views.value[1]
        if not self.owner.member.is_set() or not voters or views.gone:
            return
        for voter in voters:
            heard.setdefault(voter, now)
        there = [voter for voter in voters if voter == views.me or now - heard[voter] < SILENT_AFTER]
        if len(there) >= majority(voters):
            self.has_majority()
        else:
            self.misses_majority(len(there), len(voters))

    def has_majority(self) -> None:
        if self.why:
            self.why = ""
            self.owner.end_search()
            log.warning("a majority of the voters of the cluster answers again")

    def misses_majority(self, there: int, voters: int) -> None:
        found = self.why
        self.why = (
            f"only {there} of {voters} voters of the cluster answer: nobody is let in until a majority does, and"
            " permits are lost when the lease is over"
        )
        now = clock()
        if not found:
            log.warning("%s", self.why)
            self.searched = now
        elif now - self.searched > SEARCH_EVERY:
            self.searched = now
            self.owner.search()

    def reset(self) -> None:
        """This peer joins, perhaps again."""
        self.close()
        self.down = {}
        self.suspected = set()
        self.why = ""

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
