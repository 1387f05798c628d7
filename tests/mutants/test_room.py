"""Mutants of the waiting room: each has one rule wrong, and the exhaustive model must find a state that shows it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.room.explore import explore
from tests.room.model import Case
from tests.room.plain import NAMES, links, plain, run, source_of
from tests.room.processes import Broken

DEATH = Case(3, 1, deaths=1)
TWO = Case(3, 2, deaths=1)
CANCEL = Case(3, 1, cancels=1, entries=(2, 2, 2))
STOP = Case(3, 1, stops=1)
PERMITS = Case(3, 2, permits=(1, 2, 1))
CLOSE = Case(3, 1, closes=1)
RESIZE = Case(3, 1, resizes=1, capacity=2)


@dataclass(frozen=True)
class Mutant:
    module: str
    old: str
    new: str
    case: Case


def line(*lines: str) -> str:
    return "".join(f"    {each}\n" for each in lines)


MUTANTS = {
    # The order of stores.
    "the state is stored before the slots": Mutant(
        "table",
        line("m[seat + SLOT] = take_slots(m, seat, change.now)"),
        line("m[seat + STATE] = INSIDE", "m[seat + SLOT] = take_slots(m, seat, change.now)"),
        TWO,
    ),
    "the state is stored before the fence": Mutant(
        "table",
        line("m[LAST_FENCE] = m[LAST_FENCE] + 1"),
        line("m[seat + STATE] = INSIDE", "m[LAST_FENCE] = m[LAST_FENCE] + 1"),
        TWO,
    ),
    "a request waits before its record is complete": Mutant(
        "table", line("ticket = m[NEXT_TICKET]"), line("m[seat + STATE] = WAITING", "ticket = m[NEXT_TICKET]"), DEATH
    ),
    "a seat is free only after its slots are": Mutant(
        "table",
        line("m[seat + STATE] = FREE", "if state == WAITING:"),
        line("if state == WAITING:"),
        DEATH,
    ),
    # Repair.
    "an interrupted request is not marked": Mutant(
        "table", line("m[DIRTY] = 1", "ticket = m[NEXT_TICKET]"), line("ticket = m[NEXT_TICKET]"), DEATH
    ),
    "an interrupted release is not marked": Mutant(
        "table", line("m[DIRTY] = 1", "state = m[seat + STATE]"), line("state = m[seat + STATE]"), DEATH
    ),
    "a rebuilt table keeps half a grant": Mutant(
        "table", "and m[seat + STATE] == INSIDE:\n            m[USED]", "and True:\n            m[USED]", TWO
    ),
    "a rebuilt queue is in the order of seats": Mutant(
        "table", "for _, seat in sorted(queue):", "for _, seat in queue:", Case(3, 1, deaths=1, entries=(2, 2, 2))
    ),
    "a rebuilt table grants nothing": Mutant(
        "table",
        line("    append(m, seat)", "let_in_all_that_fit(m, change)"),
        line("    append(m, seat)"),
        DEATH,
    ),
    # Letting in.
    "one too many is let in": Mutant(
        "links", "    if m[USED] + left > m[K]:\n", "    if m[USED] >= m[K] + 1:\n", Case(3, 1)
    ),
    "small requests pass large ones": Mutant(
        "table",
        "            if not fits(m, seat, change.now):\n                break\n",
        "            if not fits(m, seat, change.now):\n                continue\n",
        PERMITS,
    ),
    "a fence does not rise": Mutant("table", line("m[LAST_FENCE] = m[LAST_FENCE] + 1"), "", Case(2, 1)),
    "a ticket is given twice": Mutant("table", line("m[NEXT_TICKET] = ticket + 1"), "", Case(3, 1)),
    "a grant is not announced": Mutant(
        "table",
        "                granted = seat\n                if seat != change.seat:",
        "                granted = seat\n                if False:",
        Case(2, 1),
    ),
    "a larger k lets nobody in": Mutant(
        "table", line("m[K] = k", "let_in_all_that_fit(m, change)"), line("m[K] = k"), RESIZE
    ),
    "k becomes smaller than a waiter wants": Mutant(
        "rules", "        return greedy\n", "        pass\n", Case(3, 2, resizes=1, permits=(1, 2, 1))
    ),
    "one of two slots stays taken": Mutant(
        "links", "left = m[seat + PERMITS]\n    m[USED]", "left = 1\n    m[USED]", PERMITS
    ),
    # Watching.
    "nobody watches the holders": Mutant(
        "links", "return [before] if before else users(m)", "return [before] if before else []", DEATH
    ),
    "nobody watches the waiter before": Mutant(
        "links",
        "return [before] if before else users(m)",
        "return [] if before else users(m)",
        Case(3, 1, deaths=2),
    ),
    "only one of two holders is watched": Mutant(
        "links", "return [before] if before else users(m)", "return [before] if before else users(m)[:1]", TWO
    ),
    "the one behind a waiter that gives up is not woken": Mutant(
        "links",
        "        if woken is not None:\n            woken.append(after)",
        "        pass",
        Case(4, 1, cancels=1, deaths=1),
    ),
    "a new first waiter is not told of its duties": Mutant(
        "table", line("    nudge(m, change, granted)"), line("    pass"), Case(4, 2, deaths=1)
    ),
    "those let in are woken in the order of the queue": Mutant(
        "table", "for seat in reversed(each) if", "for seat in each if", Case(3, 2, deaths=1, permits=(2, 1, 1))
    ),
    "a waiter let in by a death wakes nobody": Mutant(
        "rules",
        "        hear(m, seat)\n        change.woken += table.perhaps_not_woken(m, seat)\n",
        "        hear(m, seat)\n",
        Case(3, 2, deaths=1, permits=(2, 1, 1)),
    ),
    "one that gives up after it was let in wakes nobody": Mutant(
        "rules",
        "                change.woken += table.perhaps_not_woken(m, seat)\n            if 0 <",
        "                pass\n            if 0 <",
        Case(3, 2, cancels=1, deaths=1, permits=(1, 2, 1)),
    ),
    "a grant that nobody announced is not announced by the last waiter": Mutant(
        "rules",
        "        if not m[seat + HEARD] and change.now - m[seat + SINCE] > NUDGE:\n",
        "        if False:\n",
        Case(4, 1, deaths=1, resizes=1, capacity=2, entries=(1, 1, 1, 0)),
    ),
    "a first waiter that does not know its place is not told": Mutant(
        "rules",
        "    table.wake_if_late(m, change, links.first_waiter(m))\n",
        "",
        Case(4, 2, deaths=1, throttled=True),
    ),
    "a seat is taken for one that knows of its grant": Mutant(
        "table", "m[seat + HEARD], m[seat + LOOKS] = 0, 0", "m[seat + HEARD], m[seat + LOOKS] = 1, 0", DEATH
    ),
    # A room that another thread closes.
    "one that was rung does not look whether its request is over": Mutant(
        "rules",
        "    if is_over(m, seat, ticket):\n        return False\n    hear(m, seat)\n",
        "    hear(m, seat)\n",
        CLOSE,
    ),
    "a seat that another request has counts as one's own": Mutant(
        "rules", "return m[seat + TICKET] != ticket or m[seat + STATE] == FREE", "return m[seat + STATE] == FREE", CLOSE
    ),
    "a seat that nobody has counts as one's own": Mutant(
        "rules",
        "return m[seat + TICKET] != ticket or m[seat + STATE] == FREE",
        "return m[seat + TICKET] != ticket",
        CLOSE,
    ),
    "a release does not look whether the seat is another request's": Mutant(
        "rules",
        "    if not is_over(m, seat, ticket):\n",
        "    if m[seat + STATE] != FREE:\n",
        CLOSE,
    ),
    "closing ends only what waits": Mutant(
        "rules",
        "        if m[seat + STATE] != FREE and m[seat + OWNER]",
        "        if m[seat + STATE] == WAITING and m[seat + OWNER]",
        CLOSE,
    ),
    "closing ends only what is inside": Mutant(
        "rules",
        "        if m[seat + STATE] != FREE and m[seat + OWNER]",
        "        if m[seat + STATE] == INSIDE and m[seat + OWNER]",
        CLOSE,
    ),
    # The dead and the stopped.
    "the dead are not buried": Mutant(
        "rules",
        "        for one in gone:\n            table.leave(m, change, one)\n",
        "",
        DEATH,
    ),
    "a stopped first waiter is not passed over": Mutant(
        "rules", "            table.skip(m, change, head)\n", "            return\n", Case(4, 1, stops=1, deaths=1)
    ),
    "a waiter that died after it was passed over stays": Mutant(
        "rules",
        "            if senses.is_gone(seat):\n                table.leave(m, change, seat)\n            return\n",
        "            return\n",
        Case(3, 1, stops=1, deaths=1, entries=(2, 1, 1)),
    ),
    "a waiter that continues stays passed over": Mutant(
        "rules",
        "            table.resume(m, change, seat)\n",
        "            pass\n",
        Case(3, 1, stops=1, entries=(2, 2, 2)),
    ),
}


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The mutated source runs in the module's own namespace, and the modules that import from it are run again."""
    before = {name: dict(vars(module)) for name, module in plain.items()}
    try:
        for name in NAMES[NAMES.index(mutant.module) :]:
            source = source_of(name)
            if name == mutant.module:
                assert source.count(mutant.old) == 1, f"{mutant.old!r} occurs {source.count(mutant.old)} times"
                source = source.replace(mutant.old, mutant.new)
            run(plain[name], source)
        yield
    finally:
        for name, names in before.items():
            vars(plain[name]).clear()
            vars(plain[name]).update(names)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_model_notices(name: str) -> None:
    mutant = MUTANTS[name]
    with applied(mutant):
        assert outcome(mutant.case) != ""


def outcome(case: Case) -> str:
    try:
        explore(case)
    except Broken as broken:
        return str(broken)
    except (IndexError, KeyError, RecursionError, links.CorruptTable) as error:
        return type(error).__name__
    return ""
