"""Users of a room, the peer that lends slots to it, and the rest of its cluster (room/lending.py).

Users do what they do in any room (processes.py). The peer dies, is stopped, leaves, and starts again under another id;
its lease ends while it lives or after its death. The cluster is one line for k slots, first come first served, in which
users of other hosts wait too. The protocol either knows that they do, a while after they have asked, or it is *blind*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fairgate.room import layout
from fairgate.room.layout import (
    CLUSTER,
    DIRTY,
    LENDER,
    NEXT_TICKET,
    NUDGE,
    NUDGED,
    ON_LOAN,
    OWNER,
    PEER_BELL,
    PID,
    STATE,
)
from tests.room.plain import lending, links, rules, table
from tests.room.processes import NOW, Broken, Process, Processes, SeenProcesses, Words, at_first, replaced

PAST, LATER = 1, 2 * NOW  # when loans end; LATER plus the life of the peer
PEER_BELLS = 200
PEER_PID = 99
ELSEWHERE, REMOTE = 0, -1  # who has a slot of the cluster: nobody, a user of another host, or the peer in this life
HEADER_WORDS = (NEXT_TICKET, layout.LAST_FENCE, layout.USED, DIRTY, layout.PEER, PEER_BELL, layout.BECKON)
SEAT_WORDS = (
    STATE, layout.TICKET, layout.PERMITS, layout.SLOT, layout.FENCE, OWNER, PID, layout.SKIPPED, layout.HEARD, LENDER,
)  # fmt: skip
Pairs = tuple[tuple[int, int], ...]


class Peer(NamedTuple):
    lent: Pairs  # slots, and the fences of the grants
    markers: Pairs  # tickets and seats
    pending: tuple[int, ...]
    watch: tuple[int, ...]
    arrived: tuple[int, ...]  # slots that were granted, and at which it has not looked yet
    told: bool  # that others wait, or do not any more
    lapsed: bool  # it has to look because its lease was over
    called: bool
    to_ring: Pairs
    life: int
    up: bool
    stopped: bool
    leased: bool


NO_PEER = Peer((), (), (), (), (), False, False, False, (), 0, False, False, False)


class Budget(NamedTuple):
    deaths: int
    cancels: int
    stops: int
    closes: int
    forks: int
    revokes: int
    starts: int  # of the peer
    halts: int  # of the peer: its death, a stop, or its planned end
    lapses: int  # of leases of peers
    remotes: int  # requests of other hosts


class State(NamedTuple):
    table: tuple[int, ...]
    processes: tuple[Process, ...]
    peer: Peer
    slots: Pairs  # of the cluster: who has it, and the fence that it has come to
    line: Pairs  # who waits for a slot: the life of a peer, or REMOTE and the ticket from which nobody may overtake it
    tops: tuple[int, ...]  # by slot: the highest fence that anybody had there
    budget: Budget


@dataclass(frozen=True)
class Case:
    users: int
    k: int
    entries: tuple[int, ...] = ()
    permits: tuple[int, ...] = ()
    deaths: int = 0
    cancels: int = 0
    stops: int = 0
    closes: int = 0
    forks: int = 0
    revokes: int = 0
    starts: int = 1
    halts: int = 0
    lapses: int = 0
    remotes: int = 1
    blind: bool = False


Step = Callable[[Words, table.Change, SeenProcesses], State]  # of the peer; the state that it returns has no table yet
Judge = Callable[[State, State, bool], State]  # of a change; may it have revoked a permit for no other reason?


class Model(Processes):
    def __init__(self, case: Case, judge: Judge) -> None:
        self.case = case
        self.judge = judge
        seats = case.users + 2 * case.k + lending.MOST_PENDING
        words = [0] * links.size(case.k, seats)
        words[CLUSTER] = ON_LOAN
        table.create(words, case.k, seats, case.k, 0, 0)
        words[NUDGED] = NOW - NUDGE
        super().__init__(words, HEADER_WORDS, SEAT_WORDS, case.permits or (1,) * case.users, case.closes)
        untils = [links.until_at(words, slot) for slot in range(case.k)]
        self.untils = untils
        self.words += untils
        self.links = [at for at in self.links if at not in untils]
        self.tracked |= set(untils)
        budget = Budget(*[getattr(case, name) for name in Budget._fields])
        slots = ((ELSEWHERE, 0),) * case.k
        self.start = State(tuple(words), at_first(case.entries, self.n), NO_PEER, slots, (), (0,) * case.k, budget)

    def is_dead(self, state: State, owner: int) -> bool:
        if owner >= PEER_BELLS:
            return not (state.peer.up and owner == bell_of(state.peer))
        return super().is_dead(state, owner)

    def is_stopped(self, state: State, pid: int) -> bool:
        return state.peer.stopped if pid == PEER_PID else super().is_stopped(state, pid)

    # One change under the lock.

    def changed(self, state: State, words: Words, i: int, process: Process) -> State:
        after = state._replace(table=tuple(words), processes=replaced(state.processes, i, process))
        return self.judge(state, after, state.processes[i].phase == process.phase)

    def by_peer(self, state: State, step: Step, dead: State) -> list[State]:
        """All states that a change can lead to: it succeeds, or the peer dies after some store (`dead`)."""
        words, change, senses = self.begin(state)
        after = step(words, change, senses)
        rings = after.peer.to_ring + self.rings(words, change, None)
        found = [after._replace(table=tuple(words), peer=after.peer._replace(to_ring=rings))]
        if state.budget.halts:
            spent = self.spend(dead, halts=1)
            found += [spent._replace(table=tuple(part)) for part in self.partial_changes(state.table, words.stores)]
        return [self.judge(state, each, False) for each in found]

    def steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        yield from super().steps(state)
        yield from self.peer_steps(state)
        yield from self.cluster_steps(state)

    def ring(self, state: State, owner: int, ticket: int) -> State:
        if 0 < owner < PEER_BELLS:
            rung: State = super().ring(state, owner, ticket)
            return rung
        if self.is_dead(state, owner or PEER_BELLS):
            return state
        return state._replace(peer=state.peer._replace(called=True))

    # What the peer does.

    def peer_steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        peer = state.peer
        if peer.to_ring and not peer.stopped:  # also one that leaves
            (owner, ticket), rest = peer.to_ring[0], peer.to_ring[1:]
            yield True, [self.ring(state._replace(peer=peer._replace(to_ring=rest)), owner, ticket)]
        if not peer.up:
            if state.budget.starts and not peer.to_ring:
                yield False, self.starts(self.spend(state, starts=1))
            return
        if state.budget.halts:
            yield False, [self.spend(gone(state), halts=1)]
        if peer.stopped:
            yield False, [state._replace(peer=peer._replace(stopped=False))]
            return
        if state.budget.halts:
            stopped = unstamped(state)._replace(peer=peer._replace(stopped=True))
            yield False, [self.spend(stopped, halts=1)]
            yield False, self.by_peer(state, lambda *about: self.leaves(state, *about), gone(state))
        if not peer.leased:
            yield True, [self.renews(state)]
        if not peer.to_ring and self.has_to_look(state):
            yield True, self.by_peer(state, lambda *about: self.looks(state, False, *about), gone(state))

    def has_to_look(self, state: State) -> bool:
        peer = state.peer
        news = peer.called or peer.told or peer.lapsed or bool(peer.arrived)
        return news or any(self.is_dead(state, each) for each in peer.watch)

    def starts(self, state: State) -> list[State]:
        new = NO_PEER._replace(life=state.peer.life + 1, up=True, leased=True, called=True)
        fresh = state._replace(peer=new)

        def step(words: Words, change: table.Change, senses: SeenProcesses) -> State:
            senses.state = fresh
            lender = lender_of(new)
            lending.take_over(words, change, senses, lender, self.case.k)
            return fresh._replace(peer=with_lender(new, lender, words))

        return self.by_peer(state, step, gone(fresh))

    def leaves(self, state: State, words: Words, change: table.Change, senses: SeenProcesses) -> State:
        """A planned end: all slots go back to the cluster at once."""
        peer = state.peer
        lending.leave(words, change, lender_of(peer))
        top = words[layout.LAST_FENCE]
        slots = [(ELSEWHERE, max(fence, top)) if who == peer.life else (who, fence) for who, fence in state.slots]
        left: State = self.spend(gone(state)._replace(slots=tuple(slots)), halts=1)
        return left

    def wanted(self, state: State) -> int:
        """For how many of its slots the protocol says that somebody elsewhere waits."""
        mine = len([who for who, _ in state.slots if who == state.peer.life])
        return 0 if self.case.blind else min(mine, max(0, remotes(state) - free(state)))

    def looks(self, state: State, tick: bool, words: Words, change: table.Change, senses: SeenProcesses) -> State:
        peer, lender = state.peer, lender_of(state.peer)
        suspects = {owner for owner in peer.watch if self.is_dead(state, owner)}
        reserved = dict(zip(peer.arrived, peer.pending, strict=False))
        others = self.case.blind or remotes(state) > 0
        until = LATER + peer.life
        grants = [lending.Grant(slot, state.slots[slot][1] + 1, until, others) for slot in peer.arrived]
        lending.turn(words, change, senses, lender, grants, suspects, self.wanted(state), tick)
        slots = list(state.slots)
        for slot, fence, times in lender.back:
            if slots[slot] == (peer.life, fence - 1):  # else its lease was over, and the cluster has had the slot
                slots[slot] = (ELSEWHERE, fence + times)
                if slot in reserved and self.is_waited_for(words, reserved[slot]):
                    raise Broken("a slot goes back although a user waits for whom it was asked for")
        stamped = [(who, stamp or words[NEXT_TICKET]) if who == REMOTE else (who, 0) for who, stamp in state.line]
        line = (*stamped, *((peer.life, 0),) * lender.ask)
        looked = peer._replace(arrived=(), told=False, lapsed=False, called=False)
        return state._replace(peer=with_lender(looked, lender, words), slots=tuple(slots), line=line)

    def is_waited_for(self, words: Words, ticket: int) -> bool:
        """By a user with an earlier ticket?"""
        waiting = [
            seat for seat in links.waiters(words) if not words[seat + LENDER] and not words[seat + layout.SKIPPED]
        ]
        return any(words[seat + layout.TICKET] < ticket for seat in waiting)

    @staticmethod
    def renews(state: State) -> State:
        """Without the lock."""
        words = Words(state.table)
        lending.renew(words, NOW, lender_of(state.peer), LATER + state.peer.life)
        return state._replace(table=tuple(words), peer=state.peer._replace(leased=True))

    # What the cluster does.

    def cluster_steps(self, state: State) -> Iterator[tuple[bool, list[State]]]:
        budget, peer = state.budget, state.peer
        if budget.remotes:
            stamp = state.table[NEXT_TICKET] if self.case.blind and self.has_all_markers(state) else 0
            asked = state._replace(line=(*state.line, (REMOTE, stamp)), peer=peer._replace(told=peer.up))
            yield False, [self.spend(asked, remotes=1)]
        if free(state) and state.line and (state.line[0][0] == REMOTE or (peer.up and peer.leased)):
            yield False, [self.granted(state)]
        for slot, (who, fence) in enumerate(state.slots):
            if who == REMOTE:
                yield False, [state._replace(slots=with_slot(state.slots, slot, (ELSEWHERE, fence)))]
        if budget.lapses:
            lives = {who for who, _ in state.slots if who > 0} | ({peer.life} if peer.up else set())
            for life in sorted(lives):
                yield False, [self.lapses(self.spend(state, lapses=1), life)]

    @staticmethod
    def has_all_markers(state: State) -> bool:
        """Does the peer ask back all that is lent, and was not passed over?"""
        peer, m = state.peer, list(state.table)
        running = peer.up and not peer.stopped and not any(m[seat + layout.SKIPPED] for _, seat in peer.markers)
        earlier = lending.earlier_loans(m, NOW, lender_of(peer))
        return running and len(peer.markers) >= len(peer.lent) + earlier

    @staticmethod
    def granted(state: State) -> State:
        (who, _), line = state.line[0], state.line[1:]
        slot = next(slot for slot, (holder, _) in enumerate(state.slots) if holder == ELSEWHERE)
        fence = state.slots[slot][1]
        if who != REMOTE:
            arrived = (*state.peer.arrived, slot)
            slots = with_slot(state.slots, slot, (who, fence))
            return state._replace(line=line, slots=slots, peer=state.peer._replace(arrived=arrived))
        if fence + 1 <= state.tops[slot]:
            raise Broken("a fence does not rise elsewhere")
        tops = (*state.tops[:slot], fence + 1, *state.tops[slot + 1 :])
        return state._replace(line=line, slots=with_slot(state.slots, slot, (REMOTE, fence + 1)), tops=tops)

    def lapses(self, state: State, life: int) -> State:
        """The lease of this peer is over, and so is what it has lent: the others go on with higher fences."""
        words = list(state.table)
        for at in self.untils:
            if words[at] == LATER + life:
                words[at] = PAST
        most = max([words[layout.LAST_FENCE], *state.tops, *[fence for _, fence in state.slots]])
        slots = tuple([(ELSEWHERE, most) if who == life else (who, fence) for who, fence in state.slots])
        peer, line = state.peer, state.line
        if peer.up and peer.life == life:  # it gets another lease
            line = (*((life, 0),) * len(peer.arrived), *line)  # as if they had not been granted
            peer = peer._replace(arrived=(), lapsed=True, leased=False)
        return state._replace(table=tuple(words), slots=slots, peer=peer, line=line)


def remotes(state: State) -> int:
    return len([who for who, _ in state.line if who == REMOTE])


def free(state: State) -> int:
    return len([who for who, _ in state.slots if who == ELSEWHERE])


def gone(state: State) -> State:
    """The peer is dead: its requests leave the line. Its slots stay taken until its lease is over."""
    state = unstamped(state)
    line = tuple([one for one in state.line if one[0] == REMOTE])
    return state._replace(peer=NO_PEER._replace(life=state.peer.life), line=line)


def unstamped(state: State) -> State:
    """Nobody sees to it any more that users of this host do not overtake others."""
    return state._replace(line=tuple([(who, 0) for who, _ in state.line]))


def bell_of(peer: Peer) -> int:
    return PEER_BELLS + peer.life


def with_slot(slots: Pairs, slot: int, value: tuple[int, int]) -> Pairs:
    return (*slots[:slot], value, *slots[slot + 1 :])


def lender_of(peer: Peer) -> lending.Lender:
    lender = lending.Lender(peer.life, bell_of(peer), PEER_PID, 1, 0)
    lender.lent, lender.markers, lender.pending = dict(peer.lent), dict(peer.markers), list(peer.pending)
    lender.earlier_until = 2 * LATER  # here, loans end without the passing of time
    return lender


def with_lender(peer: Peer, lender: lending.Lender, words: Words) -> Peer:
    """What it knows, and what it watches from now on."""
    watch: set[int] = set()
    for ticket, seat in lender.markers.items():
        if lending.is_waiting(words, seat, ticket):
            watch |= rules.duties(words, seat, NOW).owners
    watch.discard(lender.owner)
    lent, markers = tuple(sorted(lender.lent.items())), tuple(sorted(lender.markers.items()))
    return peer._replace(lent=lent, markers=markers, pending=tuple(lender.pending), watch=tuple(sorted(watch)))
