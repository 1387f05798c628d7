"""What a person did wrong, in one line that says what it was and what to do: never a traceback."""


class BadInput(ValueError):
    """The command line ends with this text and exit code 2."""


class KMismatch(BadInput):
    """A gate is open with another k."""

    def __init__(self, gate: str, asked: int, found: int) -> None:
        super().__init__(f"gate {gate} lets {found} in, and you asked for {asked}: all its peers must say the same k")
        self.gate = gate
        self.asked = asked
        self.found = found
