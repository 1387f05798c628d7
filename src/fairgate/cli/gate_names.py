"""Names of gates that mean something else to people who know flock(1)."""

from fairgate.errors import BadInput


def refuse_number(gate: str) -> None:
    """Raises BadInput for a gate of this host that is to be opened under a number."""
    if gate.isascii() and gate.isdecimal():
        raise BadInput(
            f"{gate} would be a file descriptor for flock(1), and fairgate takes none: write ./{gate} for the file"
            f" {gate} in this directory, or use a name with a letter"
        )
