"""Short node numbers for drawing a live peer's journal, whose nodes have ids of up to nineteen digits."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from fairgate.core.ids import NIL, peer_of, seat_of
from fairgate.trace.journal import Step


class ShortIds:
    """An iterator over the steps, with nodes numbered 1, 2, 3, ... in the order in which the journal mentions them."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = iter(steps)
        self.numbers: dict[int, int] = {}

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = next(self.steps)
        self.learn(step.node)
        self.learn(step.source)
        if step.event == "view":
            for member in (*step.arguments[1], *step.arguments[2]):
                self.learn(member)
        return msgspec.structs.replace(
            step,
            node=self.short(step.node),
            source=self.short(step.source),
            message=self.short(step.message),
            arguments=self.short(step.arguments),
            effects=self.short(step.effects),
        )

    def learn(self, node: int) -> None:
        if node != NIL:
            self.numbers.setdefault(node, len(self.numbers) + 1)

    def short(self, value: Any) -> Any:
        """The value with every known id replaced. Other numbers are hardly ever equal to an id."""
        if isinstance(value, tuple):
            return tuple([self.short(part) for part in value])
        return self.numbers.get(value, value) if type(value) is int else value

    def legend(self) -> Iterator[str]:
        for node, number in self.numbers.items():
            yield f"{number} is seat {seat_of(node)} of peer {peer_of(node)}"
