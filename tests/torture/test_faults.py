"""Which connections a torture cuts, without a network."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from fairgate.torture.faults import CUT_PAIR, Faults


def faults(hosts: int, cut: set[tuple[int, int]]) -> Faults:
    network: Any = SimpleNamespace(cut=lambda src, dst: cut.add((src, dst)))
    machines: list[Any] = [SimpleNamespace(number=number) for number in range(hosts)]
    guest: Any = None
    return Faults(machines, network, 1.0, guest, random.Random(1), log=lambda _: None)


def test_three_hosts_cannot_lose_two_so_one_is_cut_off_from_all() -> None:
    cut: set[tuple[int, int]] = set()
    three = faults(3, cut)
    three.cut(CUT_PAIR, three.hosts[1])
    assert cut == {(1, 0), (0, 1), (1, 2), (2, 1)}
    assert three.disturbed() == {1}


def test_of_five_hosts_either_of_a_pair_may_be_lost() -> None:
    cut: set[tuple[int, int]] = set()
    five = faults(5, cut)
    five.cut(CUT_PAIR, five.hosts[1])
    assert len(cut) == 2
    assert five.disturbed() == {host for pair in cut for host in pair}
