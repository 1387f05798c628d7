"""Breadth-first search over all states of a case: every order of deliveries, requests, releases, cancels and faults.

Safety is checked in every step, dead ends in every state, and liveness over the whole graph at the end. The search
stops at the first violation, which is a shortest one, and reports it with its path.
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

SLICE = 20_000  # states between two progress reports
MANY = 1 << 62  # states: no limit


@dataclass(frozen=True)
class FoundViolation:
    what: str
    path: tuple[Action, ...]  # from the first state to the step that broke the property
    cycle: int = 0  # how many of the last steps form a cycle that can repeat forever; 0: none


@dataclass(frozen=True)
class CheckReport:
    case: Case
    complete: bool  # were all states seen?
    states: int
    transitions: int
    depth: int
    cyclic: int  # states on a cycle, or reachable from one
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


Progress = Callable[[int, int, int], None]  # states seen, depth, states not expanded yet


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
        """Search to the end, or until a violation, `deepest` steps, `most_states` states or Ctrl-C."""
        started = time.perf_counter()
        interrupted = False
        cyclic = 0
        collecting = gc.isenabled()
        gc.disable()  # states are tuples of numbers: collecting would scan millions of them and find no cycles
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
        """Add one level; False after a violation, or at `most_states`."""
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
        """The violation in this state's first breaking step; if no step breaks a property, the state is a dead end."""
        path, state = self.path_to(number)
        for action, _, broken in self.model.successors(state):
            if broken:
                return FoundViolation(broken, (*path, action))
        mask = self.model.waiting(state)
        waiting = [me for me in range(self.case.nodes) if mask >> me & 1]
        return FoundViolation(f"liveness: nothing moves any more, and nodes {waiting} wait", path)

    def look_at_cycles(self) -> list[int]:
        """Check liveness in runs that need not end; returns the states on cycles or reachable from one.

        Raises BadInput if there are cycles and the model uses symmetry.
        """
        self.covered.seen.rest()
        cyclic = self.covered.graph.on_cycles()
        if cyclic and self.model.table.rows:
            raise BadInput("this case has runs with cycles, and symmetry cannot check liveness in them: leave it out")
        found = (self.never() or self.fair_cycle()) if cyclic else None
        if found is not None:
            self.violations.append(found)
        return cyclic

    def never(self) -> FoundViolation | None:
        lost = self.covered.graph.lost(self.case.nodes)
        if lost is None:
            return None
        number, node = lost
        return FoundViolation(f"liveness: from here node {node} can never enter", self.path_to(number)[0])

    def fair_cycle(self) -> FoundViolation | None:
        """The fair cycle that begins nearest to the first state, or None."""
        found = {tuple(part): node for node in range(self.case.nodes) for part in parts(self.covered.graph, node)}
        for members, node in sorted(found.items()):
            path, state = self.path_to(members[0])
            part = Part(self.model, self.number_of, state, members)
            if part.is_fair():
                cycle = part.cycle()
                what = f"liveness: node {node} may wait forever, in a fair cycle of {len(cycle)}"
                return FoundViolation(f"{what} {'step' if len(cycle) == 1 else 'steps'}", path + cycle, len(cycle))
        return None

    def number_of(self, state: State) -> int:
        return self.covered.seen.find(self.model.fingerprint(state))

    def path_to(self, number: int) -> tuple[tuple[Action, ...], State]:
        """The shortest path to a state, and the state. Only fingerprints are kept, so the path is walked again."""
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
