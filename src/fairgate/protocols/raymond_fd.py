"""Raymond's algorithm with failure detectors: RF, Algorithm 1.

Theory of operation. Plain Raymond waits for N-k permissions even if some of the N nodes have crashed. Here `n` is the
number of nodes not known to have crashed, and a node waits for n-k permissions. A failure detector of class T may
suspect any node at first, but a node that it suspects after having trusted it has crashed. A node that observes this
tells all others (CRASH). To make sure that somebody observes it, each node first announces itself (INIT), and makes no
request until it has an ACK from every node that a detector of class S does not suspect. At least one of those survives,
and has the sender of the INIT in `trusted`.

raymond.py contains the lines of plain Raymond, this file those that differ. Crashed nodes are removed from `others`,
so lines 13 and 18 range over it. papers/raymond_fd.md has the lines, the names and the deviations. The most
important deviation: a node that detects a crash also tells itself.
"""

from typing import Any

from fairgate.core.about import About
from fairgate.core.declare import Id, message, node
from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.protocols.raymond import Raymond, Reply, Request


@message("rf.init")
class Init(Message):
    """INIT(j): the sender, j, announces itself."""


@message("rf.ack")
class Ack(Message):
    """ACK(i): the sender, i, trusts the receiver, and will detect its crash."""


@message("rf.crash")
class Crash(Message):
    """CRASH(j): node j has crashed."""

    j: Id


@node
class RaymondFD(Raymond):
    about = About(
        name="raymond_fd",
        paper="RF",
        kind="permission",
        cost="2N-k-1 to 2N-2, N-2 more per crash and truster",
        survives=("crash",),
        detectors=("T", "S"),
    )

    ready: bool = False  # has it passed the wait in line 8?
    T: set[int]  # T_i: nodes that the detector of class T suspects now
    S: set[int] = set()  # S_i: the same for class S; not updated once ready
    unacked: set[int]
    init_waits: set[int] = set()  # nodes whose INIT is waiting in line 35
    trusted: set[int] = set()  # RF:6
    crashed: set[int] = set()

    def initialize(self, setup: Setup) -> None:
        Raymond.initialize(self, setup)
        self.T = set(self.others)
        self.unacked = set(self.others)

    # Initialization.

    def on_start(self) -> None:
        for j in self.others:
            self.out.send(j, Init())  # RF:7
        self.await_acks()

    def await_acks(self) -> None:
        """The wait in line 8. It is evaluated again whenever an ACK arrives or S suspects another node."""
        if not self.ready and self.unacked <= self.S:  # RF:8
            self.ready = True
            if self.requesting_cs:
                self.out.note("a request waited for the initialization")
                self.request_cs()

    def request_cs(self) -> None:
        if self.ready and self.me not in self.crashed:  # if it is not ready, await_acks makes the request later
            Raymond.request_cs(self)

    # Messages.

    def on_request(self, j: int, m: Request) -> None:
        if j not in self.crashed:  # RF:23
            Raymond.on_request(self, j, m)

    def on_reply(self, j: int, m: Reply) -> None:
        if j in self.crashed:  # RF:30
            self.out.note("a reply came after the crash of its sender was known")
        else:
            Raymond.on_reply(self, j, m)

    def on_init(self, j: int, m: Init) -> None:
        if j in self.T:  # RF:35
            self.init_waits.add(j)
        else:
            self.accept(j)

    def accept(self, j: int) -> None:
        self.trusted.add(j)  # RF:36
        self.out.send(j, Ack())  # RF:37

    def on_ack(self, j: int, m: Ack) -> None:
        self.unacked.discard(j)
        self.await_acks()

    def on_crash_message(self, m: Crash) -> None:
        if m.j == self.me:
            self.stand_down()
        else:
            if m.j not in self.crashed:
                self.out.note("a CRASH message brought news")
            self.learn_crash(m.j)

    def stand_down(self) -> None:
        """Not in the paper, whose detectors are never wrong. The others have stopped counting this node, so its permit
        is void, and nobody will answer its requests."""
        self.crashed.add(self.me)
        if self.inside:
            self.lose_cs("the others take this node for crashed")
        Raymond.release_cs(self)

    def learn_crash(self, j: int) -> None:
        if j not in self.crashed:  # RF:39
            self.crashed.add(j)  # RF:40
            self.others = tuple([i for i in self.others if i != j])
            if self.permitted_by(j):  # RF:41
                self.out.note("a permission died with its giver")
                self.perm_count -= 1  # RF:42
            self.n -= 1  # RF:43
            self.await_permissions()

    # The detectors.

    def on_suspect(self, peer: int, detector: str) -> None:
        if detector == "T":
            self.T.add(peer)
            if peer in self.trusted:  # RF:44
                self.detect(peer)
        elif not self.ready:
            self.S.add(peer)
            self.await_acks()

    def on_trust(self, peer: int, detector: str) -> None:
        if detector == "T":
            self.T.discard(peer)
            if peer in self.init_waits:
                self.init_waits.discard(peer)
                self.accept(peer)
        elif not self.ready:
            self.S.discard(peer)

    def detect(self, j: int) -> None:
        self.trusted.discard(j)  # RF:46
        self.tell_itself(j)
        for i in self.others:  # RF:47
            self.out.send(i, Crash(j))  # RF:48

    def tell_itself(self, j: int) -> None:
        """Not in the paper. Without this, the last survivor would wait forever."""
        self.learn_crash(j)

    # The state.

    def loaded(self) -> None:
        self.n = self.setup.n - len(self.crashed - {self.me})
        self.others = tuple([j for j in self.setup.members if j != self.me and j not in self.crashed])

    def show(self) -> dict[str, Any]:
        return {
            **Raymond.show(self),
            "ready": self.ready,
            "T": sorted(self.T),
            "S": sorted(self.S),
            "trusted": sorted(self.trusted),
            "crashed": sorted(self.crashed),
        }


@node
class RaymondFDLiteral(RaymondFD):
    """The paper to the letter: CRASH goes to the others only, so the detecting node does not reduce its own n."""

    about = About(
        name="raymond_fd_literal",
        paper="RF",
        kind="permission",
        cost="2N-k-1 to 2N-2, N-1 more per crash and truster",
        detectors=("T", "S"),
    )

    def tell_itself(self, j: int) -> None:
        self.out.note("the detecting node told itself nothing")
