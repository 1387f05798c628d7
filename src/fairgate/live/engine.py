"""The engine of a peer: a thread with its own event loop, and the gates that the peer has open.

All state is protected by one lock. Everything that touches it is a *step*: a received frame, a change of the roster, or
a user's call. A user's step runs in the user's own thread, so taking an idle token that is already here needs no other
thread and no message, and a busy user never keeps the engine from reading. What a step sends leaves when it ends.

If a step is interrupted half-way (Ctrl-C raises an exception wherever the main thread happens to be), the gate's state
may be inconsistent. The gate then gets a new view, whose census rebuilds it from those who are inside and who wait.
"""

import asyncio
import atexit
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

from fairgate.arguments import SECOND, check_gate
from fairgate.errors import BadInput, FairgateError, ForkedPeer, GateClosed, KMismatch
from fairgate.live.background import BackgroundTasks
from fairgate.live.engine_lock import EngineLock
from fairgate.live.forks import FORKED, process
from fairgate.live.gate import RETAKES, LiveGate
from fairgate.live.live_protocols import make_of, options_of, usual_protocol
from fairgate.live.local_messages import LocalMessages, deliver
from fairgate.live.membership import Membership
from fairgate.live.no_journals import NO_JOURNALS, NoJournals
from fairgate.live.pauses import Pauses
from fairgate.live.peer_lease import PeerLease
from fairgate.live.reliable import ReliableLinks
from fairgate.live.report import PeerReport, Person, Questions, on_our_clock, report
from fairgate.live.report import encode as encode_report
from fairgate.live.resting import Resting
from fairgate.live.ticket import INSIDE, Ticket
from fairgate.live.traffic import Traffic
from fairgate.net.codec import Frame
from fairgate.net.loop import new_loop
from fairgate.net.system import clock, once
from fairgate.net.transport import Transport
from fairgate.recovery.roster import Change, Members, PeerRecord, Renew, Rise, Sit
from fairgate.registry import find_protocol

ASK, TELL, BREAK = "ask", "tell", "break"
LEFT = "this peer has left"
EXPIRED = "its lease has expired"
ENDED = "this peer's thread has ended"
CLOSE_SECONDS = 10.0

T = TypeVar("T")

log = logging.getLogger("fairgate.live")


class LiveEngine(BackgroundTasks):
    me: int
    identity: PeerRecord
    transport: Transport
    links: ReliableLinks

    def __init__(self, membership: Callable[["LiveEngine"], Membership], journals: NoJournals = NO_JOURNALS) -> None:
        super().__init__()
        self.pid = os.getpid()
        self.lock = EngineLock()
        self.user_lock = self.lock.lock  # the bare lock, for `once`: Ctrl-C cannot lose it
        self.membership = membership(self)
        self.journals = journals
        self.gates: dict[str, LiveGate] = {}
        self.local: LocalMessages = deque()  # between seats of this peer
        self.traffic = traffic = Traffic(self, self.take)
        self.on_frame, self.on_quiet = traffic.on_frame, traffic.on_quiet
        self.on_frame_elsewhere = traffic.on_frame_elsewhere
        self.members = Members()
        self.reopened: dict[str, LiveGate] = {}  # instead of gates of the same name whose seats are being given up
        self.resting = Resting(self)
        self.lease = PeerLease(self)
        self.pauses = Pauses()
        self.closed = ""  # the reason, once it is
        self.questions = Questions()
        self.ready: Future[None] = Future()
        self.thread = threading.Thread(target=self.run, name="fairgate", daemon=True)

    # Life cycle.

    def start(self) -> None:
        """Returns once this process is a peer. BadInput if it cannot become one."""
        self.thread.start()
        try:
            self.ready.result()
            atexit.register(close_if_open, weakref.ref(self))
        except BaseException:  # perhaps Ctrl-C: do not leave a peer behind that nobody closes
            if self.ready.cancel() or self.ready.exception() is not None:
                self.thread.join(CLOSE_SECONDS)
            else:
                self.close()
            raise

    def run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self.main())
        finally:  # nothing may wait for this thread any longer
            self.shut(ENDED)
            self.end_waiting()

    async def main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(self.raised)
        self.stopping = asyncio.Event()
        begin = self.loop.create_task(self.membership.begin())
        self.ready.add_done_callback(lambda _: self.loop.call_soon_threadsafe(begin.cancel))  # start() gave up
        try:
            await begin
        except BaseException as wrong:
            with suppress(InvalidStateError):
                self.ready.set_exception(wrong)
            return
        with suppress(InvalidStateError):
            self.ready.set_result(None)
            self.spawn(self.resting.watch())
            await self.stopping.wait()
        await self.end()

    async def end(self) -> None:
        self.end_tasks()
        await self.lease.until_users_stopped(self.gates.values())
        try:
            await self.membership.leave()
        except TimeoutError:
            log.warning("could not leave cleanly: no answer; the other peers will notice that this one is gone")
        self.membership.close()
        await self.transport.close()
        with self.lock:
            self.journals.close()

    def close(self) -> None:
        """Leaves; held permits are lost. Call it from any thread but the engine's. Closing twice is a no-op."""
        if self.pid != process[0] or self.closed:
            return
        self.shut(LEFT)
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(CLOSE_SECONDS)

    def shut(self, why: str) -> None:
        for _ in once(self.user_lock):
            self.traffic.now = clock()
            self.closed = self.closed or why
            for gate in self.gates.values():
                gate.close(why)
            self.deliver_local()

    def becomes(self, identity: PeerRecord, transport: Transport, links: ReliableLinks) -> None:
        """Called by the membership as soon as our identity is known."""
        self.identity = identity
        self.me = self.traffic.me = identity.id
        self.transport = transport
        self.links = self.traffic.links = links

    def start_again(self, why: str) -> None:
        """Called by the membership, in a step, after `becomes`: this peer was excluded, and has another id now."""
        for gate in [gate for gate in self.gates.values() if gate.closed]:
            del self.gates[gate.name]
        self.gates.update(self.reopened)  # in place: traffic.py has the same dictionary
        self.reopened.clear()
        self.local.clear()
        for gate in self.gates.values():
            gate.start_again(why)

    @property
    def lease_until(self) -> int:
        """Until when users of this peer may be inside, in ns on CLOCK_BOOTTIME; 0 if that is not limited."""
        return self.traffic.lease_until

    @property
    def on_lease(self) -> list[Callable[[], None]]:
        """Called in a step, after the lease was raised and when it is over."""
        return self.lease.listeners

    # Steps.

    @contextmanager
    def step(self) -> Iterator[None]:
        with self.lock:
            self.traffic.now = clock()
            yield
            self.deliver_local()

    def deliver_local(self) -> None:
        deliver(self.local, self.gates)

    def of_user(self, gate: LiveGate, work: Callable[[Ticket], None], ticket: Ticket) -> None:
        """Runs a step in the user's thread: `work` is the gate's `acquire` or `release`."""
        if self.pid != process[0]:  # `check_process`, inlined: every entry comes through here
            raise ForkedPeer(FORKED)
        if self.lock.wanted:
            self.lock.step_aside()
        for _ in once(self.user_lock):
            try:
                self.traffic.now = clock()
                work(ticket)
                if self.local:
                    self.deliver_local()
            except Exception:
                raise
            except BaseException:
                gate.broken = ticket  # must come first: a second Ctrl-C could interrupt anything before it
                self.from_outside(self.repair(gate))
                raise

    async def repair(self, gate: LiveGate) -> None:
        with self.step():
            if gate.broken is not None:
                gate.repair()

    def retake(self, gate: LiveGate, note: str) -> Ticket | None:
        """Enters at once by the kept seat, if there is one (see gate.py)."""
        if gate.kept is None:
            return None
        if self.pid != process[0]:
            raise ForkedPeer(FORKED)
        if self.lock.wanted:
            self.lock.step_aside()
        ticket = None
        try:
            for _ in once(self.user_lock):
                try:
                    self.traffic.now = clock()
                    ticket = gate.retake(note)
                except BaseException:
                    gate.broken = gate.retaken
                    self.from_outside(self.repair(gate))
                    raise
            if gate.retakes >= RETAKES:
                self.breathe(gate)
        except BaseException:
            if ticket is not None:
                self.release(gate, ticket)
            raise
        return ticket

    def release(self, gate: LiveGate, ticket: Ticket) -> None:
        self.of_user(gate, gate.release, ticket)

    def check_process(self) -> None:
        if self.pid != process[0]:
            raise ForkedPeer(FORKED)

    def breathe(self, gate: LiveGate) -> None:
        """Lets everything that has arrived be read. For the loop that means two turns: one may already be running."""
        gate.retakes = 0
        self.pauses.pause(self.traffic.now)
        reader = self.transport.reader
        if reader is not None:
            reader.read(0)
            return
        done = threading.Event()
        self.loop.call_soon_threadsafe(self.loop.call_soon, done.set)
        done.wait(CLOSE_SECONDS)

    # Called by gates.

    def sit(self, gate: LiveGate) -> None:
        if gate.name not in self.gates:  # it was at rest
            self.gates[gate.name] = gate
        self.from_outside(self.sitting(gate))

    def renew(self, gate: LiveGate) -> None:
        self.loop.call_soon_threadsafe(self.insist, partial(self.change, Renew(gate.name)))

    def census_is_over(self) -> None:
        self.loop.call_soon_threadsafe(self.membership.census_is_over)

    def spoiled(self, gate: LiveGate) -> None:
        self.from_outside(self.repair(gate))

    def abandoned(self, gate: LiveGate, ticket: Ticket) -> None:
        """The user's loop is closed, so nobody will ever release this ticket."""
        self.loop.call_soon_threadsafe(self.drop, gate, ticket)

    def drop(self, gate: LiveGate, ticket: Ticket) -> None:
        with self.step():
            gate.release(ticket)

    def lease_begins(self, gate: LiveGate, ticket: Ticket) -> None:
        self.loop.call_soon_threadsafe(self.watch_lease, gate, ticket)

    def watch_lease(self, gate: LiveGate, ticket: Ticket) -> None:
        """Ends the permit if its lease has expired. The lease may have been extended, so check under the lock."""
        with self.step():
            left = ticket.deadline - clock()
            if left <= 0:
                gate.lose(ticket, EXPIRED)
            elif ticket.state == INSIDE:
                self.loop.call_later(left / SECOND, self.watch_lease, gate, ticket)

    async def sitting(self, gate: LiveGate) -> None:
        """Tells the roster how many seats the gate needs here."""
        await self.membership.entered()
        with self.lock:
            wanted, gate.standing = gate.standing and gate.record.seats(self.me) < gate.seats, False
            sit = Sit(gate.name, gate.k, gate.protocol, gate.seats_to_ask_for())
        if not wanted or self.gates.get(gate.name) is not gate:
            return  # if the gate was reopened, `give_up_seats` calls this again
        try:
            await self.change(sit)
        except Exception as wrong:
            with self.step():
                gate.refuse(wrong if isinstance(wrong, FairgateError) else self.unforeseen(wrong))
        if gate.closed:
            self.insist(partial(self.give_up_seats, gate))
        else:
            self.resting.make_room()

    def put_to_rest(self, gate: LiveGate) -> None:
        self.insist(partial(self.give_up_seats, gate))

    async def give_up_seats(self, gate: LiveGate) -> None:
        """The gate is closed, or is to rest. Until the others know, it goes on answering censuses."""
        await self.lease.until_users_stopped([gate])
        await self.membership.entered()
        if self.gates.get(gate.name) is not gate or not (gate.closed or gate.resting):
            return  # it has started again, under another id of this peer
        await self.change(Rise(gate.name))
        with self.step():
            if self.gates.get(gate.name) is not gate:
                return
            if gate.closed:
                del self.gates[gate.name]
                again = self.reopened.pop(gate.name, None)
                if again is not None:
                    self.gates[gate.name] = again
                    self.spawn(self.sitting(again))
            elif gate.resting:
                gate.rested()
                if not gate.seats:
                    self.resting.forget(gate)

    # The roster.

    async def change(self, change: Change) -> None:
        """Returns when the change is in force here. BadInput or KMismatch if it was refused."""
        await self.membership.change(change)

    def adopt(self, members: Members) -> None:
        """Called by the membership, in a step: this roster is in force now."""
        self.members = members
        self.links.known(members)
        self.questions.only(members)
        for gate in self.gates.values():
            record = members.gate(gate.name)
            if record is not None:
                gate.adopt(record)

    # Events from the transport.

    def may_be(self, peer: int, principal: str) -> bool:
        return self.membership.may_be(peer, principal)

    def is_member(self, peer: int) -> bool:
        return peer in self.links.addresses

    def on_up(self, peer: int) -> None:
        self.links.on_up(peer)
        self.membership.on_up(peer)

    def on_down(self, peer: int, why: str) -> None:
        self.membership.on_down(peer, why)

    def on_pressure(self, peer: int, full: bool) -> None:
        pass  # messages are few and small: a peer that leaves 16 MiB of them unread is not alive

    def take(self, peer: int, frame: Frame) -> None:
        """Handles frames that are not messages of a gate."""
        kind = frame[0]
        if kind == ASK:
            with self.step():
                # not over the channel, which keeps what is not acknowledged: nobody waits for an answer that is lost
                self.links.send_bare(peer, (TELL, frame[1], encode_report(report(self))))
        elif kind == TELL:
            self.questions.answered(peer, *frame[1:])
        elif kind == BREAK:
            self.break_in(*frame[1:])
        else:
            self.membership.on_frame(peer, frame)

    def break_in(self, name: str, ident: int) -> None:
        """`fairgate break`: revokes the permit of this seat."""
        with self.step():
            gate = self.gates.get(name)
            ticket = None if gate is None else gate.tickets.get(ident)
            if gate is not None and ticket is not None:
                gate.lose(ticket, "it was revoked by `fairgate break`")

    # Gates.

    def gate(self, name: str, k: int, protocol: str | None) -> LiveGate:
        """Opens a gate in this process. Whether the other peers agree on k is found out by the first request."""
        self.check_process()
        check_gate(name, k)
        protocol = find_protocol(protocol or usual_protocol(self.members, name, k)).about.name
        for _ in once(self.user_lock):
            if self.closed:
                raise GateClosed(self.closed)
            gate = self.reopened.get(name) or self.gates.get(name) or self.resting.gates.get(name)
            if gate is not None and (gate.k, gate.protocol) != (k, protocol) and gate.is_unused():
                gate.close(f"gate {name} was opened again, with k={k} and protocol {protocol}")
            if gate is None or gate.closed:
                gate = self.new_gate(name, k, protocol)
            if gate.k != k:
                raise KMismatch(name, k, gate.k)
            if gate.protocol != protocol:
                raise BadInput(f"gate {name} runs {gate.protocol}, not {protocol}: all its peers must agree")
        assert gate is not None
        return gate

    def new_gate(self, name: str, k: int, protocol: str) -> LiveGate:
        gate = LiveGate(self, name, k, protocol, make_of(protocol, k), options_of(protocol))
        old = self.gates.get(name)
        if old is None or not old.seats:
            self.gates[name] = gate
        else:  # its seats are being given up, and the roster keeps one count of seats per gate
            self.reopened[name] = gate
        return gate

    async def close_gate(self, gate: LiveGate) -> None:
        with self.step():
            gate.close(f"gate {gate.name} was closed")
            if self.reopened.get(gate.name) is gate:
                del self.reopened[gate.name]
                return
        await self.give_up_seats(gate)

    async def ask(self, peers: Iterable[int]) -> list[PeerReport]:
        """The reports of these peers, without those that do not answer in time."""
        numbers = []
        with self.step():
            for peer in peers:
                number = self.questions.new(peer)
                numbers.append(number)
                if peer == self.me:
                    self.questions.told(number, report(self))
                else:
                    self.links.send(peer, (ASK, number))
        return await self.questions.answers(numbers)

    async def people(self, name: str) -> list[Person]:
        """The holders and waiters of this gate at all peers."""
        gate = self.members.gate(name)
        reports = await self.ask([] if gate is None else [peer for peer, _ in gate.hosts])
        told = [(one.now, found) for one in reports for found in one.gates if found.name == name]
        return [on_our_clock(person, now) for now, found in told for person in found.people]

    # Work on the loop.

    def await_on_loop(self, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> "Future[T]":
        """For users. GateClosed if the engine is closed; if it closes before the work is done, cancels the future."""
        self.check_process()
        for _ in once(self.user_lock):
            if self.closed:
                raise GateClosed(self.closed)
            future = asyncio.run_coroutine_threadsafe(work(*args), self.loop)
            self.awaited.add(future)
        future.add_done_callback(self.awaited.discard)
        return future


def close_if_open(engine: "weakref.ref[LiveEngine]") -> None:
    if (found := engine()) is not None:
        found.close()
