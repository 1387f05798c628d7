"""Things by number, each once: what makes a state a short tuple of small numbers."""

from typing import Any


class Table:
    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.things: list[Any] = []

    def number(self, thing: Any) -> int:
        found = self.numbers.get(thing)
        if found is None:
            found = self.numbers[thing] = len(self.things)
            self.things.append(thing)
        return found
