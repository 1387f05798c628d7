"""The command `fairgate`. Each subcommand is a module or subpackage with a function that returns its exit code."""

import os
import sys


def main() -> None:
    """Entry point. `run` skips the imports that only the other commands need, because a user's command waits for it."""
    if sys.argv[1:2] == ["run"]:
        try:
            from fairgate.cli.run.command import run_arguments  # noqa: PLC0415

            code = run_arguments(sys.argv[2:])
        except KeyboardInterrupt:  # before `run` handles signals
            code = 130
        os._exit(code)  # `run` has cleaned up; the interpreter would take a tenth of its time for that once more
    try:
        from fairgate.cli.app import run  # noqa: PLC0415

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while it imports
        code = 130
    sys.exit(code)


__all__ = ["main"]
