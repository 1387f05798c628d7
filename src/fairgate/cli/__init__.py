"""The command `fairgate`. A command is one module here, with one function that returns its exit code (see app.py)."""

import sys


def main() -> None:
    """`run` without all that only the others need: somebody's command waits for it."""
    if sys.argv[1:2] == ["run"]:
        from fairgate.cli.run.command import run_arguments  # noqa: PLC0415

        sys.exit(run_arguments(sys.argv[2:]))
    from fairgate.cli.app import run  # noqa: PLC0415

    sys.exit(run(sys.argv[1:]))


__all__ = ["main"]
