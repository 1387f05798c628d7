"""Breadth first over all states of a case: every order of deliveries, requests, releases, cancels and faults.

Safety is looked at in every step, dead ends in every state, liveness at the end over the whole graph. The
first violation met is a shortest one, and comes with the way to it.
"""

import gc
import time
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from fairgate.check.case import Case
from fairgate.check.covered import Covered
from fairgate.check.fair_cycles import Part, parts
from fairgate.check.model import Action, Model, State
from fairgate.check.workers import NOBODY, Alone, Batches, Crew
from fairgate.errors import BadInput

SLICE = 20_000  # states between two words of progress
MANY = 1 << 62  # states


@dataclass(frozen=True)
class FoundViolation:
    what: str
    path: tuple[Action, ...]  # from the first state to the step that broke it
    cycle: int = 0  # so many of its last steps can go on for ever, round and round


@dataclass(frozen=True)
class CheckReport:
    case: Case
    complete: bool  # were all states seen?
    states: int
    transitions: int
    depth: int
    cyclic: int  # states on a cycle, or behind one
    violations: tuple[FoundViolation, ...]
    seconds: float
    interrupted: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            **self.case.describe(),
            "complete": self.complete,
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "cyclic": self.cyclic,
            "violations": [violation.what for violation in self.violations],
            "cycle": sum(violation.cycle for violation in self.violations),
            "states_per_second": self.states / self.seconds if self.seconds else 0.0,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }


Progress = Callable[[int, int, int], None]  # states seen, depth, states waiting to be looked at


class Explorer:
    def __init__(self, case: Case, model: Model | None = None, workers: int = 1) -> None:
        self.case = case
        self.model = model or Model(case)
        self.workers = workers
        self.covered = Covered()
        self.depth = 0
        self.complete = False
        self.violations: list[FoundViolation] = []

    def run(
        self, deepest: int | None = None, progress: Progress | None = None, most_states: int | None = None
    ) -> CheckReport:
        """To the end, to a violation, to `deepest` steps, to `most_states` states, or to Ctrl-C."""
        started = time.perf_counter()
        interrupted = False
        cyclic = 0
        collecting = gc.isenabled()
        gc.disable()  # states are tuples of numbers: there are no cycles to find among millions of them
        try:
            self.search(deepest, progress, most_states)
            cyclic = len(self.look_at_cycles()) if self.complete else 0
        except KeyboardInterrupt:
            interrupted = True
            self.complete = False
        finally:
            if collecting:
                gc.enable()
        return CheckReport(
            case=self.case,
            complete=self.complete,
            states=self.covered.seen.size(),
            transitions=self.covered.transitions,
            depth=self.depth,
            cyclic=cyclic,
            violations=tuple(self.violations),
            seconds=time.perf_counter() - started,
            interrupted=interrupted,
        )

    def search(self, deepest: int | None, progress: Progress | None, most_states: int | None) -> None:
        first = self.model.first()
        self.covered.seen.add(self.model.fingerprint(first), -1)
        level = deque([(array("i", [len(first), *first]), NOBODY)])
        crew = Alone(self.model) if self.workers == 1 else Crew(self.model, self.workers)
        try:
            while level and (deepest is None or self.depth < deepest):
                with closing(crew.expand(level)) as batches:
                    if not self.cover(batches, progress, most_states):
                        return
                level = self.covered.taken()
                self.depth += 1
        finally:
            crew.end()
        self.complete = not level

    def cover(self, batches: Batches, progress: Progress | None, most_states: int | None) -> bool:
        """One level; False if something breaks, or there are too many states."""
        covered = self.covered
        for batch, finder in batches:
            said = covered.looked // SLICE
            if not covered.add(batch, finder, most_states or MANY):
                if most_states is None or covered.looked < most_states:
                    self.violations.append(self.breaking(covered.looked))
                return False
            if progress is not None and covered.looked // SLICE > said:
                progress(covered.seen.size(), self.depth, covered.seen.size() - covered.looked)
        return True

    def breaking(self, number: int) -> FoundViolation:
        """What goes wrong in this state, or in the first of its steps that does."""
        path, state = self.path_to(number)
        for action, _, broken in self.model.successors(state):
            if broken:
                return FoundViolation(broken, (*path, action))
        mask = self.model.waiting(state)
        waiting = [me for me in range(self.case.nodes) if mask >> me & 1]
        return FoundViolation(f"liveness: nothing moves any more, and nodes {waiting} wait", path)

    def look_at_cycles(self) -> list[int]:
        """Liveness where runs need not end."""
        self.covered.seen.rest()
        cyclic = self.covered.graph.on_cycles()
        if cyclic and self.model.table.rows:
            raise BadInput("runs go in circles here, and who waits in them is only looked at without --symmetry")
        found = (self.never() or self.fair_cycle()) if cyclic else None
        if found is not None:
            self.violations.append(found)
        return cyclic

    def never(self) -> FoundViolation | None:
        lost = self.covered.graph.lost(self.case.nodes)
        if lost is None:
            return None
        number, node = lost
        return FoundViolation(f"liveness: from here node {node} can never come in", self.path_to(number)[0])

    def fair_cycle(self) -> FoundViolation | None:
        """The one that begins nearest to the first state."""
        found = {tuple(part): node for node in range(self.case.nodes) for part in parts(self.covered.graph, node)}
        for members, node in sorted(found.items()):
            path, state = self.path_to(members[0])
            part = Part(self.model, self.number_of, state, members)
            if part.is_fair():
                cycle = part.cycle()
                what = f"liveness: node {node} may wait for ever, in a fair cycle of {len(cycle)}"
                return FoundViolation(f"{what} {'step' if len(cycle) == 1 else 'steps'}", path + cycle, len(cycle))
        return None

    def number_of(self, state: State) -> int:
        return self.covered.seen.find(self.model.fingerprint(state))

    def path_to(self, number: int) -> tuple[tuple[Action, ...], State]:
        """The shortest way to a state, and the state, walked again from the first: only fingerprints were kept."""
        seen = self.covered.seen
        numbers = [number]
        while (parent := seen.parent(numbers[-1])) >= 0:
            numbers.append(parent)
        state = self.model.first()
        path = []
        for step in reversed(numbers[:-1]):
            wanted = seen.fingerprint(step)
            action, state = next(
                (action, successor)
                for action, successor, _ in self.model.successors(state)
                if self.model.fingerprint(successor) == wanted
            )
            path.append(action)
        return tuple(path), state


def explore(case: Case, deepest: int | None = None, progress: Progress | None = None, workers: int = 1) -> CheckReport:
    return Explorer(case, workers=workers).run(deepest, progress)
