"""Many processes at one gate that come and go. `make stress` runs this for longer.

In rooms, and as guests of a cluster, they are also killed. Peers of a cluster are killed in test_survival.py, and by
`fairgate torture`: their slots are free only when their leases are over.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairgate.live.gate import RETAKES
from tests.live.colony import Colony, send, until
from tests.live.kinds import CLUSTER, GUESTS, KINDS, ROOM, Kind, each_kind, each_place, is_many, of_kinds
from tests.live.nursery import Plan

K = 3
PEERS = 12
CHANGES = 4.0  # per second


@pytest.fixture
def colony(kind: Kind, tmp_path: Path) -> Iterator[Colony]:
    with Colony(kind, tmp_path) as colony:
        yield colony


# Coming and going.


def come_and_go(colony: Colony, seconds: float, seed: int) -> None:
    rng = random.Random(seed)
    k = colony.kind.most
    kills = 0.5 if colony.kind.name in (ROOM, GUESTS) else 0.0

    def newcomer() -> None:
        colony.start(Plan(seed=rng.randrange(1 << 30), k=k, tasks=rng.choice([1, 1, 1, 2])))

    for _ in range(PEERS):
        newcomer()
    until(lambda: any(visit.entered for visit in colony.visits()), colony.state)  # a busy machine takes its time
    deadline = time.monotonic() + seconds
    leaving: set[int] = set()
    while time.monotonic() < deadline:
        time.sleep(rng.expovariate(CHANGES))
        staying = [pid for pid in colony.pids if pid not in leaving]
        if rng.random() < kills:
            colony.kill(rng.choice(colony.pids))
        elif staying:
            chosen = rng.choice(staying)
            leaving.add(chosen)
            colony.leave(chosen)
        if len(colony.living()) < 2 * PEERS:  # else the machine is too slow to let those go that want to leave
            for _ in range(PEERS - len([pid for pid in colony.pids if pid not in leaving])):
                newcomer()
    colony.end()
    visits = colony.check(k)
    overtaken = colony.overtakes()
    print(
        f"{colony.kind.name}: {visits} visits of {len(colony.killed) + len(colony.said_bye())} processes,"
        f" {len(colony.killed)} killed; overtaken at most {max(overtaken)} times,"
        f" {sum(overtaken) / visits:.2f} on average"
    )
    assert visits > PEERS
    assert colony.kind.is_unused("gate", k)


@of_kinds(ROOM, GUESTS, "fair_k_bounded", "centralised", "one_line")
def test_come_and_go(colony: Colony) -> None:
    come_and_go(colony, 1.5, seed=1)


@pytest.mark.stress
@each_kind
def test_come_and_go_for_long(colony: Colony) -> None:
    come_and_go(colony, 60.0, seed=2)


@each_place
def test_ten_peers_that_start_at_once_share_one_gate(colony: Colony) -> None:
    at = time.monotonic() + 0.3
    pids = [colony.start(Plan(seed=number, at=at)) for number in range(10)]
    until(lambda: {visit.task[0] for visit in colony.visits() if visit.left} == set(pids), colony.state)
    if colony.kind.name == CLUSTER:
        gate = colony.kind.gate("gate")
        assert gate is not None
        assert sorted([colony.kind.pid_of(peer) or 0 for peer, _ in gate.hosts]) == sorted(pids)
    colony.end()
    colony.check(K)
    assert colony.kind.is_unused("gate", K)


@each_place
def test_tasks_of_two_processes_have_a_request_each(colony: Colony) -> None:
    pids = [colony.start(Plan(seed=number, tasks=5, stay=0.002, think=0.0)) for number in range(2)]
    until(lambda: len(colony.lines()) > 1500, colony.state)
    colony.end()
    colony.check(K)
    entries = Counter(visit.task for visit in colony.visits() if visit.entered)
    print(f"entries: {sorted(entries.values())}")
    assert len(entries) == 10
    for pid in pids:  # each gets roughly its share
        assert sum(count for task, count in entries.items() if task[0] == pid) > entries.total() / 4


# Killing.


def victims(colony: Colony, role: str, rng: random.Random) -> list[int]:
    if role == "several":
        return rng.sample(colony.pids, 4)
    visits = {visit.task[0]: visit for visit in colony.visits() if visit.task[0] in colony.pids}  # the latest of each
    inside = role == "holder"
    return [pid for pid, visit in visits.items() if not visit.left and bool(visit.entered) == inside][:1]


def kill_again_and_again(colony: Colony, role: str, rounds: int) -> None:
    rng = random.Random(role)

    def newcomer() -> int:
        return colony.start(Plan(seed=rng.randrange(1 << 30), stay=0.003, think=0.001))

    newest = [newcomer() for _ in range(8)]
    for _ in range(rounds):
        until_inside(colony, newest)
        newest = []
        for pid in victims(colony, role, rng):
            colony.kill(pid)
            newest.append(newcomer())
    assert len(colony.killed) >= rounds / 2
    colony.end()
    colony.check(K)
    assert colony.kind.is_unused("gate", K)


def been_inside(colony: Colony) -> set[int]:
    return {visit.task[0] for visit in colony.visits() if visit.entered}


def until_inside(colony: Colony, pids: list[int]) -> None:
    """Waits until each of them has been inside once."""
    until(lambda: been_inside(colony) >= set(pids), colony.state)


ROLES = ["holder", "waiter", "several"]


@of_kinds(ROOM, GUESTS)
@pytest.mark.parametrize("role", ROLES)
def test_kill(colony: Colony, role: str) -> None:
    kill_again_and_again(colony, role, 4)


@pytest.mark.stress
@of_kinds(ROOM, GUESTS)
@pytest.mark.parametrize("role", ROLES)
def test_kill_for_long(colony: Colony, role: str) -> None:
    kill_again_and_again(colony, role, 100)


# Stopping.


@of_kinds(CLUSTER)
def test_a_stopped_peer_blocks_the_others_only_until_it_continues(colony: Colony) -> None:
    """A stopped process is not dead: it keeps what it has until it continues."""
    pids = [colony.start(Plan(seed=number, k=1, stay=0.001, think=0.001)) for number in range(4)]
    until_inside(colony, pids)
    send(pids[0], signal.SIGSTOP)
    pids.append(colony.start(Plan(seed=9, k=1)))  # a new view: its census waits for the stopped one
    time.sleep(0.3)
    colony.check(1)
    assert pids[-1] not in been_inside(colony)
    os.kill(pids[0], signal.SIGCONT)
    until_inside(colony, pids)
    colony.end()
    colony.check(1)


# Fairness.


@of_kinds(*[name for name in KINDS if is_many(name)])
def test_tight_loops(colony: Colony) -> None:
    """Eight peers contend all the time: prints their shares, and asserts what the protocol guarantees."""
    at = time.monotonic() + 0.3
    plans = [Plan(seed=number, threads=True, stay=0, think=0, at=at) for number in range(8)]
    pids = [colony.start(plan) for plan in plans]
    until_inside(colony, pids)
    time.sleep(0.3)
    colony.end()
    entries = colony.said_bye()
    colony.check(K)
    overtaken = colony.overtakes()
    print(
        f"{colony.kind.name}: entries {sorted(entries.values())}, overtaken at most {max(overtaken)} times,"
        f" {colony.overtakes_by_one()} of them by one other"
    )
    assert min(entries.values()) > 0


def contend(colony: Colony, seconds: float) -> list[int]:
    """Eight peers contend all the time, for some seconds during which all are present. Returns their entries."""
    pids = [colony.start(Plan(seed=number, threads=True, stay=0, think=0)) for number in range(8)]
    until_inside(colony, pids)
    begin = time.monotonic_ns()
    time.sleep(seconds)
    over = time.monotonic_ns()
    colony.end()
    colony.check(K)
    entries = Counter(visit.task[0] for visit in colony.visits() if begin <= visit.entered < over)
    by_one = colony.overtakes_by_one(begin, apart_from=1_000)
    print(f"entries {sorted(entries.values())}, overtaken at most {by_one} times by one other")
    if colony.kind.name != ROOM:  # there a process is overtaken only before it has a ticket, while it has no processor
        assert by_one <= 4 * RETAKES  # docs/live-internals.md, "Entering again"
    return [entries[pid] for pid in pids]


@each_place
def test_nobody_is_overtaken_again_and_again(colony: Colony) -> None:
    assert min(contend(colony, 3.0)) > 0


@pytest.mark.stress
@each_place
def test_no_peer_enters_twice_as_often_as_another(colony: Colony) -> None:
    """Needs a processor for each of them now and then, and some time."""
    entries = contend(colony, 10.0)
    assert max(entries) <= 2 * min(entries)
