"""Which free slots a fault excuses, and what else breaks a promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fairgate.torture.history import SECOND, Gap, History
from fairgate.torture.judgement import SHORT, Calm, Fault, Judge, Verdict, between, longest, outside


def fault(at: float, seconds: float, what: str = "peers killed") -> Fault:
    return Fault(what, "host1", int(at * SECOND), seconds)


def gap(begin: float, end: float) -> Gap:
    return Gap(int(begin * SECOND), int(end * SECOND))


def test_a_fault_excuses_free_slots_for_its_time() -> None:
    assert outside(gap(1, 9), []) == [gap(1, 9)]
    assert outside(gap(1, 9), [fault(0.5, 3)]) == [gap(3.5, 9)]
    assert outside(gap(1, 9), [fault(5, 1), fault(2, 2)]) == [gap(1, 2), gap(4, 5), gap(6, 9)]
    assert outside(gap(1, 9), [fault(0, 3), fault(1, 20)]) == []
    assert outside(gap(1, 9), [fault(0, 0.5), fault(10, 5)]) == [gap(1, 9)]


def test_faults_divide_gaps() -> None:
    faults = [fault(0, 1), fault(5, 1), fault(3, 1), fault(20, 1)]
    assert between([gap(1, 9), gap(20, 25)], faults) == [gap(1, 3), gap(3, 5), gap(5, 9), gap(20, 25)]
    assert longest([gap(5, 9), gap(20, 25)]) == 5
    assert longest([]) == 0


def verdict(text: str, faults: Sequence[Fault] = (), guests: Sequence[str] = ()) -> Verdict:
    history = History()
    for line in text.strip().splitlines():
        guest, what, seconds, *more = line.split()
        history.told(" ".join([guest, what, str(int(float(seconds) * SECOND)), *more]))
    judge = Judge(history, 1, 0, 20 * SECOND, faults, [])
    return judge.verdict(Counter(), Calm(10 * SECOND, frozenset(guests)), Path())


SERVED = "a asks 0\na enters 0 0 1\na leaves 12\nb asks {asks}\nb enters {enters} 0 2\nb leaves 19\n"


def test_a_slot_may_be_free_for_half_a_second() -> None:
    assert verdict(SERVED.format(asks=1, enters=12.5), guests=["b"]).wrong == []
    late = verdict(SERVED.format(asks=1, enters=12.75))
    assert late.wrong == ["somebody was waiting at 12.50 s, and a slot stayed free for another 0.25 s"]
    assert late.longest == 0.75
    assert late.longest_excused == 0.75


def test_a_fault_of_a_peer_excuses_more_than_one_of_a_guest() -> None:
    text = SERVED.format(asks=1, enters=14)
    assert verdict(text, [fault(12, 3)]).wrong == []
    assert verdict(text, [fault(12, 3)]).longest == 0
    found = verdict(text, [fault(12.25, SHORT, "guests killed")])
    assert found.wrong == [
        "somebody was waiting at 12.75 s, and a slot stayed free for another 1.25 s;"
        " 0.50 s before that: guests killed (host1)"
    ]
    assert found.longest == 1.75
    assert found.longest_excused == 2


def test_guests_and_slots_that_are_forgotten() -> None:
    text = SERVED.format(asks=5, enters=12)
    assert verdict(text, guests=["b"]).wrong == []
    assert verdict(text, guests=["a"]).wrong == ["a was not served once the faults had stopped"]
    assert verdict("a asks 0\na enters 0 0 1\na leaves 9\n").wrong == [
        "slot 0 was lost: nobody entered it once the faults had stopped"
    ]
