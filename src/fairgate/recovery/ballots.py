"""Paxos for a sequence of rosters: version v+1 is chosen by the voters of version v.

Theory of operation. Each version is a whole roster, so nobody needs a log. A node knows the last version that was
chosen, as far as it has heard (`at`, `value`), and a voter at most one value more, which it has accepted as the
successor. Voters vote only on the successor of their own last version. A promise also covers later versions: whoever
leads keeps its ballot from version to version, and needs no first phase again as long as the voters are the same. With
other voters it asks for their promises first. A leader that is told of a version which it did not choose gives up its
ballot: what it proposed for that version may not have been chosen.

Nothing is stored on a disk. A voter that restarts comes back under a new id, as a new member, so it has no votes that
it could forget.
"""

from fairgate.core.declare import Fixed, Option, node
from fairgate.core.message import Message
from fairgate.core.node import Node
from fairgate.core.setup import Setup
from fairgate.recovery.agreed import (
    NO_BALLOT,
    NO_VALUE,
    Accept,
    Accepted,
    Ballot,
    Chosen,
    Nack,
    Prepare,
    Promise,
    Value,
    ids,
    majority,
)

IDLE, PREPARE, LEAD = "idle", "prepare", "lead"
MILLION = 1_000_000


@node
class Ballots(Node):
    """The voter's and the leader's part. Subclasses say what is wanted (`serve`) and what follows (`entered`)."""

    timed = True

    lease: Option[int] = 10_000_000_000
    drift: Option[int] = 10_000  # of one clock against another, in parts per million
    period: Option[int] = 0  # between two beats; 0: only when the driver says so
    patience: Option[int] = 0  # how long a silent peer is waited for; 0: forever
    wait: Fixed[int] = 0  # a lease on the slowest clock, measured by the fastest
    oldest: Fixed[int] = 0  # times that are further in the past make no difference
    own: Fixed[list[Message]] = []  # messages of this node to itself, taken before the step ends

    at: int = 0
    value: Value = NO_VALUE
    promised: Ballot = NO_BALLOT
    accepted: Ballot = NO_BALLOT
    accepted_value: Value = NO_VALUE  # of version at + 1
    # Whoever leads.
    phase: str = IDLE
    ballot: Ballot = NO_BALLOT
    promises: dict[int, tuple[Ballot, Value]] = {}
    proposal: Value = NO_VALUE
    accepts: dict[int, int] = {}  # voter -> what it knows to be left of the leases that the proposal takes away
    led: int = 0  # since when

    def initialize(self, setup: Setup) -> None:
        self.wait = self.lease + (self.lease * self.drift + MILLION - 1) // MILLION
        self.oldest = max(self.wait, self.patience) + 1

    @property
    def is_voter(self) -> bool:
        return self.me in self.value[1]

    def serve(self) -> None:
        """Do what is wanted by now: propose it, or ask whoever leads."""
        raise NotImplementedError

    def entered(self, before: Value, wait: int) -> None:
        """A new version is known. Those that it excluded have no lease after `wait`."""
        raise NotImplementedError

    def tell_those_that_left(self, before: Value) -> None:
        """That this voter knows the version without them. The leader tells everybody."""
        raise NotImplementedError

    def left_of_leases(self, value: Value) -> int:
        """For how long the members that this value excludes may have leases, as far as this voter knows."""
        raise NotImplementedError

    def let_in(self, value: Value) -> None:
        """This voter accepts a roster: from now on, its new members have a lease."""
        raise NotImplementedError

    def watch(self) -> None:
        """Whoever leads was heard: wait again before taking over."""
        raise NotImplementedError

    def tell(self, dst: int, msg: Message) -> None:
        if dst == self.me:
            self.own.append(msg)
        else:
            self.out.send(dst, msg)

    def tell_voters(self, msg: Message) -> None:
        for voter in self.value[1]:
            self.tell(voter, msg)

    # Whoever leads.

    def take_over(self) -> None:
        if self.is_voter and self.phase != LEAD:
            self.ballot = (self.promised[0] + 1, self.me)
            self.prepare()

    def prepare(self) -> None:
        self.phase = PREPARE
        self.promises = {}
        self.proposal = NO_VALUE
        self.tell_voters(Prepare(self.at, self.ballot))

    def on_promise(self, src: int, m: Promise) -> None:
        if self.phase != PREPARE or m.ballot != self.ballot or m.at != self.at:
            return
        self.promises[src] = (m.accepted, m.value)
        if len(self.promises) == majority(self.value[1]):
            self.phase = LEAD
            self.led = self.now
            _, value = max(self.promises.values())
            if value[0]:
                self.inherit(value)  # it may have been chosen
            else:
                self.serve()

    def inherit(self, value: Value) -> None:
        """Propose what somebody else has proposed."""
        self.propose(value)

    def propose(self, value: Value) -> None:
        self.proposal = value
        self.accepts = {}
        self.tell_voters(Accept(self.at, self.ballot, value))

    def on_accepted(self, src: int, m: Accepted) -> None:
        if not self.proposal[0] or m.ballot != self.ballot or m.at != self.at:
            return
        self.accepts[src] = m.left
        if len(self.accepts) == majority(self.value[1]):
            before = self.value
            self.adopt(self.at + 1, self.proposal, max(self.accepts.values()))
            for peer in sorted({*ids(before), *ids(self.value)} - {self.me}):
                self.tell(peer, Chosen(self.at, self.value))
            if self.value[0] != before[0] and self.is_voter:
                self.prepare()  # other voters have promised nothing
            self.serve()

    def on_nack(self, m: Nack) -> None:
        self.promised = max(self.promised, m.promised)
        if m.promised > self.ballot:
            self.step_down()

    def step_down(self) -> None:
        self.phase = IDLE
        self.proposal = NO_VALUE

    def repeat(self) -> None:
        """Send again what may have been lost."""
        for voter in self.value[1]:
            if self.phase == PREPARE and voter not in self.promises:
                self.tell(voter, Prepare(self.at, self.ballot))
            elif self.phase == LEAD and self.proposal[0] and voter not in self.accepts:
                self.tell(voter, Accept(self.at, self.ballot, self.proposal))

    # The voters.

    def may_vote(self, src: int, at: int, ballot: Ballot) -> bool:
        if at != self.at or not self.is_voter:
            return False
        if ballot < self.promised:
            self.tell(src, Nack(self.at, self.promised))
            return False
        self.promised = ballot
        if src != self.me:
            self.step_down()
            self.watch()
        return True

    def on_prepare(self, src: int, m: Prepare) -> None:
        if self.may_vote(src, m.at, m.ballot):
            self.tell(src, Promise(self.at, m.ballot, self.accepted, self.accepted_value))

    def on_accept(self, src: int, m: Accept) -> None:
        if self.may_vote(src, m.at, m.ballot):
            self.accepted = m.ballot
            self.accepted_value = m.value
            self.let_in(m.value)
            self.tell(src, Accepted(self.at, m.ballot, self.left_of_leases(m.value)))

    # What was chosen.

    def learned(self, at: int, value: Value) -> None:
        """Somebody else led, so what this node proposed for that version was not chosen, perhaps."""
        self.step_down()
        self.follow(at, value)
        self.serve()

    def follow(self, at: int, value: Value) -> None:
        before = self.value
        self.adopt(at, value, self.wait)
        self.tell_those_that_left(before)

    def adopt(self, at: int, value: Value, wait: int) -> None:
        before = self.value
        self.at = at
        self.value = value
        self.accepted = NO_BALLOT
        self.accepted_value = NO_VALUE
        self.proposal = NO_VALUE
        self.accepts = {}
        if value[0] != before[0]:
            self.step_down()
        self.entered(before, wait)

    # The state.

    def age(self, when: int) -> int:
        """How long ago that was. A key must be valid on any clock."""
        return min(self.now - when, self.oldest)

    def led_key(self) -> int:
        return self.age(self.led) if self.patience else 0

    def load_led(self, age: int) -> None:
        self.led = self.now - age
