"""The set of states seen so far, by fingerprint. `seen.pyx` is its compiled twin, with some 20 bytes per state.

A state's number is its place in the order in which states were seen. The states themselves are not kept, only the
number of each one's parent, so that the shortest path to a state can be found again.
"""


class Seen:
    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.fingerprints: list[int] = []
        self.parents: list[int] = []

    def add(self, fingerprint: int, parent: int) -> int:
        """The number of a new state; -1 - number for a state that was seen before."""
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
        """Free memory that is only needed by `add` and `find`.

        A no-op here. The compiled twin frees its table, and rebuilds it on the next call of either.
        """

    def size(self) -> int:
        return len(self.fingerprints)

    def fingerprint(self, number: int) -> int:
        return self.fingerprints[number]

    def parent(self, number: int) -> int:
        return self.parents[number]
