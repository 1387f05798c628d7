"""Breadth first over all states of a case: every order of deliveries, requests, releases, cancels and faults.

Safety is looked at in every step, dead ends in every state, liveness at the end over the whole graph. The
first violation met is a shortest one, and comes with the way to it.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairgate.check.case import Case
from fairgate.check.liveness import Graph
from fairgate.check.model import Action, Model, State
from fairgate.check.seen import Seen

MUST = frozenset(["message", "release", "suspect", "timer", "tick"])  # the rest may happen, and need not
SLICE = 20_000  # states between two words of progress


@dataclass(frozen=True)
class Violation:
    what: str
    path: tuple[Action, ...]  # from the first state to the step that broke it


@dataclass(frozen=True)
class Report:
    case: Case
    complete: bool  # were all states seen?
    states: int
    transitions: int
    depth: int
    cyclic: int  # states on a cycle, or behind one
    violations: tuple[Violation, ...]
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
            "states_per_second": self.states / self.seconds if self.seconds else 0.0,
            "seconds": self.seconds,
            "interrupted": self.interrupted,
        }


Progress = Callable[[int, int, int], None]  # states seen, depth, states waiting to be looked at


class Explorer:
    def __init__(self, case: Case, model: Model | None = None) -> None:
        self.case = case
        self.model = model or Model(case)
        self.seen = Seen()
        self.graph = Graph()
        self.transitions = 0
        self.depth = 0
        self.complete = False
        self.violations: list[Violation] = []

    def run(
        self, deepest: int | None = None, progress: Progress | None = None, most_states: int | None = None
    ) -> Report:
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
        finally:
            if collecting:
                gc.enable()
        seconds = time.perf_counter() - started
        return Report(
            self.case,
            self.complete,
            self.seen.size(),
            self.transitions,
            self.depth,
            cyclic,
            tuple(self.violations),
            seconds,
            interrupted,
        )

    def search(self, deepest: int | None, progress: Progress | None, most_states: int | None) -> None:
        first = self.model.first()
        self.seen.add(hash(first), -1)
        level = [first]
        number = 0
        while level and (deepest is None or self.depth < deepest):
            following: list[State] = []
            for state in level:
                if not self.look(state, number, following):
                    return
                number += 1
                if most_states is not None and number >= most_states:
                    return
                if progress is not None and number % SLICE == 0:
                    progress(self.seen.size(), self.depth, self.seen.size() - number)
            level = following
            self.depth += 1
        self.complete = not level

    def look(self, state: State, number: int, following: list[State]) -> bool:
        """All steps from one state; False if one of them breaks a property."""
        moves = False
        for action, successor, broken in self.model.successors(state):
            self.transitions += 1
            if broken:
                self.violations.append(Violation(broken, (*self.path_to(number), action)))
                return False
            found = self.seen.add(hash(successor), number)
            if found >= 0:
                following.append(successor)
            if action[0] in MUST:
                moves = True
                self.graph.edge(found if found >= 0 else -1 - found)
        waiting = self.model.pending(state)
        self.graph.close(sum(1 << me for me in waiting))
        if waiting and not moves and not self.model.cut_off(state):
            self.violations.append(
                Violation(f"liveness: nothing moves any more, and nodes {waiting} wait", self.path_to(number))
            )
            return False
        return True

    def look_at_cycles(self) -> list[int]:
        """Liveness where runs need not end."""
        cyclic = self.graph.on_cycles()
        if cyclic:
            found = self.graph.lost(self.case.nodes)
            if found is not None:
                state, node = found
                self.violations.append(
                    Violation(f"liveness: from here node {node} can never come in", self.path_to(state))
                )
        return cyclic

    def path_to(self, number: int) -> tuple[Action, ...]:
        """The shortest way to a state, walked again from the first: only fingerprints were kept."""
        numbers = [number]
        while (parent := self.seen.parent(numbers[-1])) >= 0:
            numbers.append(parent)
        state = self.model.first()
        path = []
        for step in reversed(numbers[:-1]):
            wanted = self.seen.fingerprint(step)
            action, state = next(
                (action, successor)
                for action, successor, _ in self.model.successors(state)
                if hash(successor) == wanted
            )
            path.append(action)
        return tuple(path)


def explore(case: Case, deepest: int | None = None, progress: Progress | None = None) -> Report:
    return Explorer(case).run(deepest, progress)
