"""`fairgate run`: run a command inside a gate.

1. Wait for a permit: of a gate of this host (on_host.py), or of a cluster, as a guest (as_guest.py) or as a peer of
   its own (in_cluster.py). A signal ends the wait.
2. Start the command, with a descriptor that shows whether processes that it started are still running (inside.py).
3. Supervise it (fairgate.command) until it ends: forward signals, hand over the terminal, enforce the lease.
4. Release the slot, unless processes that the command started are still running.

A user's command waits for all that is imported here, so most imports are inside functions, and
tests/cli/test_imports_of_run.py lists what may be imported.
"""

import errno
import os
from collections.abc import Sequence

from fairgate.cli.exits import BAD_INPUT, CLOSED_PIPE, GOOD, WRONG, complain
from fairgate.cli.run.inside import cannot_run
from fairgate.cli.run.options import Options, read_options
from fairgate.command.process import find_program
from fairgate.errors import BadInput, FairgateError


def run_arguments(arguments: Sequence[str]) -> int:
    """Run `fairgate run` with these arguments and return its exit code."""
    open_standard_descriptors()
    try:
        options = read_options(arguments)
        return show_help() if options.help else run(options)
    except BadInput as wrong:
        complain(wrong)
        return BAD_INPUT
    except FairgateError as wrong:
        complain(wrong)
        return WRONG
    except OSError as wrong:
        if wrong.errno == errno.EMFILE:
            complain("this process has too many open files: raise the limit (ulimit -n)")
        else:
            complain(f"{wrong.filename}: {wrong.strerror}" if wrong.filename else wrong.strerror)
        return WRONG


def run(options: Options) -> int:
    """Wait for a permit and run the command; returns the exit code."""
    try:  # before the wait for the gate, which may be long
        program = find_program(options.command[0])
    except OSError as wrong:
        return cannot_run(options, wrong)
    if options.network:
        from fairgate.cli.run.as_guest import run_as_guest, standing_for  # noqa: PLC0415

        standing = standing_for(options)
        if standing is not None:
            return run_as_guest(options, program, standing)
        from fairgate.cli.run.in_cluster import run_in_cluster  # noqa: PLC0415

        return run_in_cluster(options, program)
    from fairgate.cli.run.on_host import run_on_host  # noqa: PLC0415

    return run_on_host(options, program)


def show_help() -> int:
    from fairgate.cli.run.help import parser  # noqa: PLC0415

    try:
        print(parser().format_help(), end="", flush=True)
    except BrokenPipeError:
        return CLOSED_PIPE
    return GOOD


def open_standard_descriptors() -> None:
    """If one is closed (`<&-`), open it, so that no file of ours gets its number. The command finds it closed again."""
    while True:
        file = os.open(os.devnull, os.O_RDWR)
        if file > 2:
            os.close(file)
            return
