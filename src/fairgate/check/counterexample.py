"""Shows a violation as a journal, as a scenario and as a picture.

Real nodes walk the path of the violation again (reenact.py). If a node raised an error in the last step, that step
appears in the picture, but a journal or scenario ends before it: neither could be run through it.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from fairgate.check.case import Case
from fairgate.check.explore import FoundViolation
from fairgate.check.model import Model
from fairgate.check.reenact import Reenactment, initialising
from fairgate.core.choose import from_floats
from fairgate.errors import BadInput
from fairgate.scenario.run import DASHES, run_scenario
from fairgate.trace.journal import JournalWriter
from fairgate.trace.spacetime import spacetime

MOST_SEEDS = 1_000_000


class Counterexample:
    def __init__(self, model: Model, violation: FoundViolation) -> None:
        """`model` must be the one in which the path was found: the path refers to messages by its numbers."""
        self.model = model
        self.violation = violation
        self.reenactment = Reenactment(model, violation.path)

    def commands(self) -> list[str]:
        """The path as scenario commands, without comments."""
        return [command.split("  #")[0] for block in self.reenactment.commands for command in block]

    # The journal.

    def write_journal(self, path: str | os.PathLike[str]) -> None:
        with JournalWriter(path) as journal:
            journal.header(self.model.case.protocol, self.model.setup, "check")
            for step in self.reenactment.kept.steps:
                journal.step(step)

    # The picture.

    def picture(self, width: int = 100, ascii_only: bool = False) -> Iterator[str]:
        """The lines of the picture, from the first state on. Steps have the line numbers of the journal."""
        steps = list(self.reenactment.kept.steps)
        if self.reenactment.refused is not None:
            steps.append(self.reenactment.refused)
        columns = self.model.setup.members
        yield from spacetime(steps, columns, self.reenactment.opening + 2, width=width, ascii_only=ascii_only)
        yield from self.reenactment.faults

    # The scenario.

    def write_scenario(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(self.scenario(), encoding="utf-8")

    def scenario(self) -> str:
        """The scenario with its output. Raises BadInput if no scenario can express the path."""
        if self.reenactment.unsaid:
            raise BadInput(f"{self.reenactment.unsaid}: write this counterexample as a journal instead")
        blocks = [[self.protocol_line(), *self.opening()], *self.played(), self.closing()]
        text = "\n".join("\n".join([*block, DASHES, ""]) for block in blocks)
        title = f"# {self.violation.what}\n# The shortest path to it, found by {command_line(self.model.case)}\n"
        return run_scenario(title + text, lambda *_: self.model.steps.make) + self.ending()

    def protocol_line(self) -> str:
        setup = self.model.setup
        words = [f"protocol {self.model.case.protocol} members 0..{setup.n - 1} k {setup.k}"]
        if self.reenactment.choices:
            words.append(f"seed {seed_for(self.reenactment.choices)}")
        if self.breaks_census():
            words.append("census off")
        return " ".join(words + [f"{name}={word(value)}" for name, value in setup.options.items()])

    def breaks_census(self) -> bool:
        """Does the network lose or duplicate a token or coordinator? Then every later step would report a violation."""
        counts = self.model.steps.counts
        return any(what in {"lose", "duplicate"} and any(counts(m)) for what, _, m, _ in self.violation.path)

    def opening(self) -> list[str]:
        return [*initialising(self.model.setup.members), "deliver all"] if self.model.listens else []

    def played(self) -> list[list[str]]:
        played = self.reenactment.commands if self.reenactment.refused is None else self.reenactment.commands[:-1]
        return [block for block in played if block]

    def closing(self) -> list[str]:
        """Commands that show the final state. Nodes that show different fields do not fit in one table."""
        kinds = {tuple(node.show()) for node in self.reenactment.nodes.values()}
        return ["flight", "state"] if len(kinds) == 1 else ["flight", *(f"state {me}" for me in self.reenactment.nodes)]

    def ending(self) -> str:
        """The last step as a comment, if it cannot be run."""
        if self.reenactment.refused is None:
            return ""
        return "".join(f"\n# {command}" for command in self.reenactment.commands[-1]) + f"\n# {self.violation.what}\n"


def seed_for(choices: list[tuple[int, int]]) -> int:
    """A seed with which a scenario's nodes make these choices.

    A scenario can only set a seed, not single choices. Paths contain few choices, so trying seeds is fast enough.
    """
    for seed in range(MOST_SEEDS):
        chooser = from_floats(random.Random(seed).random)
        if all(chooser(n) == choice for n, choice in choices):
            return seed
    raise BadInput(
        f"no seed below {MOST_SEEDS} makes these {len(choices)} choices in a scenario: "
        "write this counterexample as a journal instead"
    )


def word(value: Any) -> str:
    """An option's value as scenarios and the command line write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def command_line(case: Case) -> str:
    """The command that explores a case. Options at their default are left out, except for the size."""
    words = [f"fairgate check {case.protocol} --nodes {case.nodes} --k {case.k} --requests {case.requests}"]
    for each in fields(Case)[4:]:
        value = getattr(case, each.name)
        if each.name == "options":
            words += [f"--option {name}={word(set_to)}" for name, set_to in value.items()]
        elif each.name == "tick" and value != each.default:
            words.append(f"(and tick={value})")  # the command has no such option
        elif value != each.default:
            words.append(f"--{each.name}" if value is True else f"--{each.name} {value}")
    return " ".join(words)
