"""States of Sigma that differ only in what makes no difference: one of them stands for all.

It is for cases without leases and second questions, with replicas that stay where they are, and resets of one node
that is no client. Then a client sends one REQUEST of each request to each replica. What is left out, and why nobody can
tell:

- A RELEASE that the replica has no use for, now or later: it knows no such request, and none is under way to it; or
  another RELEASE of the same is under way, and no REQUEST that could come between the two.
- A YIELD of a vote that is no more: votes are numbered, and no number comes twice.
- A RESPONSE to a request that is over, if the RELEASE that a vote is answered with would be such a useless one.
- A RESPONSE that another one of the same incarnation has overtaken (`is_old`): the REQUEST has been there, and the
  RELEASE that is sent in the end comes after it.
- A RESPONSE to who is inside, for the same reason: no replica takes a vote back, and one that has lost its memory says
  nothing to who does not ask.
- Whether anything has happened to a node yet: its first message makes it draw its life, and here it has one choice.
- What a client knows of the replicas while it is inside, or asks for nothing. Where they are: they do not move. Who has
  not answered yet: nobody is asked again.
- Lamport's clocks, once nobody will ask any more. Until then a RESPONSE is left out only if its clock is no news.
- The numbers of RESPONSEs and votes, but for their order at one client: they are compared, and the next is above all.
- Timestamps, but for the order of (timestamp, client), once nobody will ask any more: nothing else is compared.

`tests/check/test_sigma.py` holds it to that: the steps from a state, and from the one that stands for it, lead
to states that the same ones stand for.
"""

from __future__ import annotations

from typing import Any

from fairgate.check.model import Model, State
from fairgate.core.ids import NIL
from fairgate.core.keyspace import place_of
from fairgate.core.message import Key
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.votes import Release

REQUEST, RELEASE, YIELD, RESPONSE = "sg.request", "sg.release", "sg.yield", "sg.response"
# Where things stand in keys (replica.py, strawman.py) and in messages (votes.py).
INSIDE, LIFE, CLOCK, REPLICAS, TS, STARTED, RESP = 3, 4, 5, 7, 8, 9, 10  # of a node
AT, CLIENT, M_TS = 3, 4, 6  # of every message: the replica's number first
Y_INC, Y_GRANT = 7, 8
R_NODE, R_INC, R_SEQ, R_GRANT, R_OWNER, R_OWNER_TS, R_CLOCK = 8, 9, 10, 11, 12, 13, 14

TOP = 99  # the number of a node's last RESPONSE: above all that are left

Who = tuple[int, int, int]  # a node, its incarnation, and a client: numbers are compared by one client only
Stamp = tuple[int, int]  # timestamp and client


class Lives(Model):
    """A model in which it is known which life a node draws."""

    def life(self, state: State, me: int) -> int:
        raise NotImplementedError


class Used:
    """The numbers that a thing has in it."""

    def __init__(self) -> None:
        self.seqs: dict[Who, set[int]] = {}
        self.stamps: set[Stamp] = set()

    def add(self, who: Who, *numbers: int) -> None:
        self.seqs.setdefault(who, {0}).update(numbers)

    def stamp(self, ts: int, client: int) -> None:
        if ts != NIL:
            self.stamps.add((ts, client))


class Quotient:
    def __init__(self, model: Lives) -> None:
        self.model = model
        self.things = model.things
        self.known: dict[int, Used] = {}
        self.orders: dict[Any, int] = {}  # each order of numbers once
        self.renumbered: dict[tuple[int, ...], int] = {}
        self.touched = [self.after_nothing(me) for me in range(model.n)]

    def after_nothing(self, me: int) -> dict[int, int]:
        """By the life that it draws, what a useless RELEASE makes of a node that nothing has happened to yet."""
        release = Release(0, place_of(me), me, me, 0, 0).key()
        message = self.model.table.number("message", (me, me, release))
        return {outcome.choices[0]: outcome.key for outcome in self.model.steps.deliver(self.model.fresh[me], message)}

    def of(self, concrete: State) -> State:
        model, things = self.model, self.things
        state = list(concrete)
        for me in range(model.n):
            if state[me] == model.fresh[me]:
                state[me] = self.touched[me][model.life(concrete, me)]
        gates = [gate_of(things[state[me]][1]) for me in range(model.n)]
        asking = any(things[state[model.n + me]][1] for me in range(model.n))
        flight = live([(message, things[message][2]) for message in state[model.at_flight :]], gates, asking)
        after = self.ranked([*state[: model.n], *flight], asking)
        messages = sorted(after[model.n :], key=model.table.hashes.__getitem__)
        return (*after[: model.n], *state[model.n : model.at_flight], *messages)

    def ranked(self, things: list[int], asking: bool) -> list[int]:
        """The things with their numbers replaced by how many smaller ones there are."""
        seqs: dict[Who, set[int]] = {}
        stamps: set[Stamp] = set()
        used = [self.used(thing) for thing in things]
        for each in used:
            stamps |= each.stamps
            for who, numbers in each.seqs.items():
                seqs[who] = seqs[who] | numbers if who in seqs else numbers
        order = () if asking else tuple(sorted(stamps))
        by = {who: tuple(sorted(numbers)) for who, numbers in seqs.items()}
        context = self.number(order) * 2 + asking
        ids = {who: self.number(numbers) for who, numbers in by.items()}
        after = []
        for thing, each in zip(things, used, strict=True):
            place = (thing, context, *[ids[who] for who in each.seqs])
            found = self.renumbered.get(place)
            if found is None:
                renumber = Renumber({who: by[who] for who in each.seqs}, order, asking)
                found = self.renumbered[place] = self.changed(thing, renumber)
            after.append(found)
        return after

    def number(self, order: tuple[Any, ...]) -> int:
        return self.orders.setdefault(order, len(self.orders))

    def used(self, thing: int) -> Used:
        found = self.known.get(thing)
        if found is None:
            found = self.known[thing] = Used()
            if self.model.table.kinds[thing] == "message":
                numbers_of_message(self.things[thing][2], found)
            else:
                me, key = self.things[thing]
                numbers_of_node(me, gate_of(key), found)
        return found

    def changed(self, thing: int, renumber: Renumber) -> int:
        number = self.model.table.number
        if self.model.table.kinds[thing] == "message":
            src, dst, m = self.things[thing]
            return number("message", (src, dst, renumber.message(m)))
        me, key = self.things[thing]
        return number("key", (me, with_gate(key, renumber.node(me, gate_of(key)))))


# What makes a difference.


def live(flight: list[tuple[int, Key]], gates: list[Key], asking: bool) -> list[int]:
    """The messages that do, by number."""
    left: list[Key] = []
    numbers = []
    for number, m in sorted(flight, key=what_counts_first):
        if m[0] == RESPONSE:
            news = asking and m[R_CLOCK] > gates[m[CLIENT]][CLOCK]
            dead = not news and is_late(gates, m, left)
        elif m[0] == RELEASE:
            dead = is_useless(gates, m, left)
        else:
            dead = m[0] == YIELD and not is_current(gates[m[AT]], m)
        if not dead:
            left.append(m)
            numbers.append(number)
    return numbers


def what_counts_first(message: tuple[int, Key]) -> int:
    """What the others are judged by."""
    return (REQUEST, RELEASE, YIELD, RESPONSE).index(message[1][0])


def is_late(gates: list[Key], m: Key, left: list[Key]) -> bool:
    """A RESPONSE that another one has overtaken, or to a request that is over and needs no further RELEASE."""
    gate = gates[m[CLIENT]]
    if gate[TS] != m[M_TS]:
        return not m[R_GRANT] or is_useless(gates, m, left)
    r = gate[RESP][m[AT]]
    return (gate[INSIDE] or (r[2] == m[R_INC] and m[R_SEQ] <= r[3])) and not is_asked(m, left)


def is_useless(gates: list[Key], m: Key, left: list[Key]) -> bool:
    """A RELEASE of the request that this message is about: does nobody wait for it, or is one under way?"""
    if is_asked(m, left):
        return False
    return not has(gates[m[AT]], m) or any(other[0] == RELEASE and same(other, m) for other in left)


def is_asked(m: Key, left: list[Key]) -> bool:
    """Is a REQUEST under way that such a RELEASE would end?"""
    return any(
        other[0] == REQUEST and other[AT] == m[AT] and other[CLIENT] == m[CLIENT] and other[M_TS] <= m[M_TS]
        for other in left
    )


def same(other: Key, m: Key) -> bool:
    return bool(other[AT] == m[AT] and other[CLIENT] == m[CLIENT] and other[M_TS] == m[M_TS])


def has(gate: Key, m: Key) -> bool:
    """Would such a RELEASE end a request at this replica?"""
    _, owner, owner_ts, _, _, _, _, queue, *_ = replica_of(gate, m[AT])
    if owner == m[CLIENT]:
        return bool(owner_ts <= m[M_TS])
    return any(client == m[CLIENT] and ts <= m[M_TS] for ts, client, *_ in queue)


def is_current(gate: Key, m: Key) -> bool:
    """Is it the vote that the replica has given?"""
    _, owner, _, _, _, grant, *_ = replica_of(gate, m[AT])
    return bool(owner == m[CLIENT] and gate[LIFE] == m[Y_INC] and grant == m[Y_GRANT])


def replica_of(gate: Key, i: int) -> Key:
    for rep in gate[REPLICAS]:
        if rep[0] == i:
            found: Key = rep
            return found
    return (i, NIL, NIL, NIL, NIL, 0, 0, ())


def gate_of(key: Key) -> Key:
    """The protocol's own part of a node's key."""
    found: Key = key[3][1][0][1]
    return found


def with_gate(key: Key, gate: Key) -> Key:
    version, _, *rest = key[3]
    return (*key[:3], (version, ((0, gate),), *rest))


# Numbers.


def numbers_of_node(me: int, gate: Key, used: Used) -> None:
    used.stamp(gate[TS], me)
    if gate[TS] != NIL and not gate[INSIDE]:
        for i, _, inc, seq, _, owner, owner_ts, grant, _, _, _, yielded, *_ in gate[RESP]:
            used.add((i, inc, me), seq, grant, yielded)
            used.stamp(owner_ts, owner)
    for _, owner, owner_ts, _, _, grant, _, queue, *_ in gate[REPLICAS]:
        used.add((me, gate[LIFE], owner), grant)
        used.stamp(owner_ts, owner)
        for w in queue:
            used.stamp(w[0], w[1])


def numbers_of_message(m: Key, used: Used) -> None:
    used.stamp(m[M_TS], m[CLIENT])
    if m[0] == YIELD:
        used.add((m[AT], m[Y_INC], m[CLIENT]), m[Y_GRANT])
    elif m[0] == RESPONSE:
        used.add((m[R_NODE], m[R_INC], m[CLIENT]), m[R_SEQ], m[R_GRANT])
        used.stamp(m[R_OWNER_TS], m[R_OWNER])


class Renumber:
    def __init__(self, seqs: dict[Who, tuple[int, ...]], order: tuple[Stamp, ...], asking: bool) -> None:
        self.seqs = {who: {number: at for at, number in enumerate(numbers)} for who, numbers in seqs.items()}
        self.stamps = {stamp: at + 1 for at, stamp in enumerate(order)}
        self.asking = asking

    def ts(self, ts: int, client: int) -> int:
        return ts if self.asking or ts == NIL else self.stamps[ts, client]

    def clock(self, clock: int) -> int:
        return clock if self.asking else 0

    def node(self, me: int, gate: Key) -> Key:
        return (
            *gate[:CLOCK],
            self.clock(gate[CLOCK]),
            TOP,
            tuple([self.replica(me, gate[LIFE], rep) for rep in gate[REPLICAS]]),
            self.ts(gate[TS], me),
            gate[STARTED],
            self.resps(me, gate),
            *gate[RESP + 1 :],
        )

    def resps(self, me: int, gate: Key) -> Key:
        if gate[TS] == NIL:
            return ()
        if gate[INSIDE]:  # with all votes: nobody hears how many there are
            return tuple(
                [(i, NIL, NIL, 0, NIL, me, NIL, 1, NEVER, NEVER, False, 0, False, NEVER, 0) for i, *_ in gate[RESP]]
            )
        return tuple([self.resp(me, r) for r in gate[RESP]])

    def resp(self, me: int, r: Key) -> Key:
        i, _, inc, seq, age, owner, owner_ts, grant, until, due, _, yielded, *rest = r
        ranks = self.seqs[i, inc, me]
        owner_ts = self.ts(owner_ts, owner)
        return (i, NIL, inc, ranks[seq], age, owner, owner_ts, ranks[grant], until, due, False, ranks[yielded], *rest)

    def replica(self, me: int, inc: int, rep: Key) -> Key:
        i, owner, owner_ts, life, age, grant, until, queue, *rest = rep
        waiting = tuple([(self.ts(ts, client), client, *more) for ts, client, *more in queue])
        grant = self.seqs[me, inc, owner][grant]
        return (i, owner, self.ts(owner_ts, owner), life, age, grant, until, waiting, *rest)

    def message(self, m: Key) -> Key:
        fields = list(m)
        fields[M_TS] = self.ts(m[M_TS], m[CLIENT])
        if m[0] == YIELD:
            fields[Y_GRANT] = self.seqs[m[AT], m[Y_INC], m[CLIENT]][m[Y_GRANT]]
        elif m[0] == RESPONSE:
            ranks = self.seqs[m[R_NODE], m[R_INC], m[CLIENT]]
            fields[R_SEQ], fields[R_GRANT] = ranks[m[R_SEQ]], ranks[m[R_GRANT]]
            fields[R_OWNER_TS] = self.ts(m[R_OWNER_TS], m[R_OWNER])
            fields[R_CLOCK] = self.clock(m[R_CLOCK])
        return tuple(fields)
