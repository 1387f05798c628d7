"""The states that were seen, by fingerprint; plain. `seen.pyx` keeps the same in C arrays, some 20 bytes a state.

A state's number is the order in which it was seen. Its parent's number is kept, so that the shortest way
to it can be found again; the states themselves are not.
"""


class Seen:
    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.fingerprints: list[int] = []
        self.parents: list[int] = []

    def add(self, fingerprint: int, parent: int) -> int:
        """The number of a new state; -1 - number of one that was seen before."""
        number = self.numbers.get(fingerprint)
        if number is not None:
            return -1 - number
        number = self.numbers[fingerprint] = len(self.fingerprints)
        self.fingerprints.append(fingerprint)
        self.parents.append(parent)
        return number

    def find(self, fingerprint: int) -> int:
        """The number of a state; -1 if it was not seen."""
        return self.numbers.get(fingerprint, -1)

    def rest(self) -> None:
        """It may be that nobody asks again: the compiled twin gives up its table until somebody does."""

    def size(self) -> int:
        return len(self.fingerprints)

    def fingerprint(self, number: int) -> int:
        return self.fingerprints[number]

    def parent(self, number: int) -> int:
        return self.parents[number]
