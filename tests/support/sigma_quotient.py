"""Merges equivalent states of Sigma: each state is replaced by one representative of its class.

This is valid for cases without leases and retries, with replicas that do not move, and with resets of only one node,
which is not a client. In such cases a client sends, for each request, one REQUEST to each replica. The representative
leaves out the following, and no node can tell the difference:

- A RELEASE that is of no use to the replica, now or later. Either the replica does not know the request and no REQUEST
  for it is in flight; or another such RELEASE is in flight, and no REQUEST that could arrive between the two.
- A YIELD of a vote that is no longer given. Votes are numbered, and numbers are never reused.
- A RESPONSE to a request that is over, if the RELEASE with which the client would answer a vote is useless as above.
- A RESPONSE that a later one of the same incarnation has overtaken (`is_old`). The REQUEST has arrived, and the
  client's final RELEASE comes after it.
- A RESPONSE to a client that is inside, for the same reason. No replica takes back a vote, and a replica that lost its
  memory sends nothing to a client that makes no request.
- Whether a node has received anything yet. Its first message makes it draw its life, and here it has only one choice.
- What a client knows about the replicas while it is inside or idle. Where they are, since they do not move. Which of
  them have not answered, since no REQUEST is repeated.
- Lamport clocks, once no client will make another request. Before that, a RESPONSE is left out only if it does not
  advance the client's clock.
- The numbers of RESPONSEs and votes, except for their order at each client: they are only compared, and the next one is
  higher than all others.
- Timestamps, except for the order of (timestamp, client), once no client will make another request: nothing else is
  compared.

`tests/check/test_sigma.py` checks this: the steps from a state and from its representative lead to states with the same
representatives.
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
# Indexes of fields in keys (replica.py, strawman.py) and in messages (votes.py).
INSIDE, LIFE, CLOCK, REPLICAS, TS, RESP = 3, 4, 5, 7, 11, 14  # in the key of a node
AT, CLIENT, M_TS = 3, 4, 6  # in every message: the replica's number, the client, the timestamp
Y_INC, Y_GRANT = 7, 8
R_NODE, R_INC, R_SEQ, R_GRANT, R_OWNER, R_OWNER_TS, R_CLOCK = 8, 9, 10, 11, 12, 13, 14

TOP = 99  # stands for the number of a node's last RESPONSE: higher than all ranks

Who = tuple[int, int, int]  # a node, its incarnation, and a client: only that client compares the numbers
Stamp = tuple[int, int]  # timestamp and client


class Lives(Model):
    """A model that determines which life a node draws."""

    def life(self, state: State, me: int) -> int:
        raise NotImplementedError


class Used:
    """The numbers and timestamps that occur in a thing."""

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
        self.orders: dict[Any, int] = {}  # sorted numbers -> an index that identifies them
        self.renumbered: dict[tuple[int, ...], int] = {}
        self.touched = [self.after_nothing(me) for me in range(model.n)]

    def after_nothing(self, me: int) -> dict[int, int]:
        """For each life that a new node may draw, its key after a useless RELEASE, its first message."""
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
        """The things with their numbers and timestamps replaced by their ranks."""
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


# Which messages make a difference.


def live(flight: list[tuple[int, Key]], gates: list[Key], asking: bool) -> list[int]:
    """The numbers of the messages that make a difference."""
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
    """Sort key: whether a message makes a difference depends only on those before it in this order."""
    return (REQUEST, RELEASE, YIELD, RESPONSE).index(message[1][0])


def is_late(gates: list[Key], m: Key, left: list[Key]) -> bool:
    """Was this RESPONSE overtaken by another one, or is its request over and in need of no further RELEASE?"""
    gate = gates[m[CLIENT]]
    if gate[TS] != m[M_TS]:
        return not m[R_GRANT] or is_useless(gates, m, left)
    r = gate[RESP][m[AT]]
    return (gate[INSIDE] or (r[3] == m[R_INC] and m[R_SEQ] <= r[4])) and not is_asked(m, left)


def is_useless(gates: list[Key], m: Key, left: list[Key]) -> bool:
    """Would a RELEASE of this message's request be of no use, because none is needed or one is already in flight?"""
    if is_asked(m, left):
        return False
    return not has(gates[m[AT]], m) or any(other[0] == RELEASE and same(other, m) for other in left)


def is_asked(m: Key, left: list[Key]) -> bool:
    """Is a REQUEST in flight that such a RELEASE would end?"""
    return any(
        other[0] == REQUEST and other[AT] == m[AT] and other[CLIENT] == m[CLIENT] and other[M_TS] <= m[M_TS]
        for other in left
    )


def same(other: Key, m: Key) -> bool:
    return bool(other[AT] == m[AT] and other[CLIENT] == m[CLIENT] and other[M_TS] == m[M_TS])


def has(gate: Key, m: Key) -> bool:
    """Would such a RELEASE end a request at this replica?"""
    _, owner, owner_ts, _, _, _, _, _, queue, *_ = replica_of(gate, m[AT])
    if owner == m[CLIENT]:
        return bool(owner_ts <= m[M_TS])
    return any(client == m[CLIENT] and ts <= m[M_TS] for ts, client, *_ in queue)


def is_current(gate: Key, m: Key) -> bool:
    """Does this YIELD name the vote that the replica has currently given?"""
    _, owner, _, _, _, _, grant, *_ = replica_of(gate, m[AT])
    return bool(owner == m[CLIENT] and gate[LIFE] == m[Y_INC] and grant == m[Y_GRANT])


def replica_of(gate: Key, i: int) -> Key:
    for rep in gate[REPLICAS]:
        if rep[0] == i:
            found: Key = rep
            return found
    return (i, NIL, NIL, NIL, NIL, NEVER, 0, 0, ())


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
        for i, _, _, inc, seq, _, owner, owner_ts, grant, _, _, _, _, yielded, *_ in gate[RESP]:
            used.add((i, inc, me), seq, grant, yielded)
            used.stamp(owner_ts, owner)
    for _, owner, owner_ts, _, _, _, grant, _, queue, *_ in gate[REPLICAS]:
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


def all_votes(me: int, i: int) -> Key:
    """The record of replica i at a client that has its vote and knows nothing else."""
    return (i, NIL, NIL, NIL, 0, NIL, me, NIL, 1, NEVER, NEVER, NIL, False, 0, False, NEVER, 0)


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
            *gate[REPLICAS + 1 : TS],
            self.ts(gate[TS], me),
            *gate[TS + 1 : RESP],
            self.resps(me, gate),
            *gate[RESP + 1 :],
        )

    def resps(self, me: int, gate: Key) -> Key:
        if gate[TS] == NIL:
            return ()
        if gate[INSIDE]:  # pretend that it has all votes: the actual number makes no difference
            return tuple([all_votes(me, i) for i, *_ in gate[RESP]])
        return tuple([self.resp(me, r) for r in gate[RESP]])

    def resp(self, me: int, r: Key) -> Key:
        i, _, over_ts, inc, seq, age, owner, owner_ts, grant, until, due, sent, _, yielded, *rest = r
        ranks = self.seqs[i, inc, me]
        owner_ts = self.ts(owner_ts, owner)
        known = (inc, ranks[seq], age, owner, owner_ts, ranks[grant], until, due)
        return (i, NIL, over_ts, *known, sent, False, ranks[yielded], *rest)

    def replica(self, me: int, inc: int, rep: Key) -> Key:
        i, owner, owner_ts, life, age, asked, grant, until, queue, *rest = rep
        waiting = tuple([(self.ts(ts, client), client, *more) for ts, client, *more in queue])
        grant = self.seqs[me, inc, owner][grant]
        return (i, owner, self.ts(owner_ts, owner), life, age, asked, grant, until, waiting, *rest)

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
