"""The command line: registers all commands and turns their outcomes into exit codes.

A command is a function of its options that returns its exit code:

    0    success                        1    a violation or a difference was found, or the operation failed
    2    bad input, in one line         130  interrupted by Ctrl-C        141  stdout was closed (a broken pipe)

A command can also raise: BadInput, JournalError and ScenarioError become exit code 2, ReplayError and any other
FairgateError 1, each printed as one line and never as a traceback.

To add a command, write it in its own module and register it in COMMANDS below. `run` is dispatched in __init__.py
before this module is imported; it is registered here only so that the help lists it.
"""

import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Annotated, Any, cast

import typer

from fairgate import __version__
from fairgate.cli.abandon import abandon_command
from fairgate.cli.check.command import check_command
from fairgate.cli.demo.command import demo_command
from fairgate.cli.exits import BAD_INPUT, CLOSED_PIPE, GOOD, INTERRUPTED, WRONG, complain
from fairgate.cli.inspect.command import break_command, resize_command, top_command, who_command
from fairgate.cli.keys import COMMANDS as KEYS_COMMANDS
from fairgate.cli.lab import COMMANDS as LAB_COMMANDS
from fairgate.cli.peer import peer_command
from fairgate.cli.protocols import protocols_command
from fairgate.cli.replay import replay_command
from fairgate.cli.risk import risk_command
from fairgate.cli.run.command import run_arguments
from fairgate.cli.sim.command import sim_command
from fairgate.cli.swarm.command import swarm_command
from fairgate.cli.sweep import sweep_command
from fairgate.cli.torture import torture_command
from fairgate.cli.where import setup_command, where_command
from fairgate.errors import BadInput, FairgateError
from fairgate.scenario.run import ScenarioError
from fairgate.sim.run import kind_of_build
from fairgate.trace.journal import JournalError
from fairgate.trace.replay import ReplayError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # a disk, mostly

# The base class of all usage errors. Some versions of typer bundle their own click, so it is taken from typer itself.
UsageError = cast(type[Exception], typer.BadParameter.__base__)

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},  # subcommands inherit it
)
COMMANDS: dict[str, Callable[..., int | None]] = {
    "demo": demo_command,
    "sim": sim_command,
    "check": check_command,
    "swarm": swarm_command,
    "replay": replay_command,
    "protocols": protocols_command,
    "risk": risk_command,
    "who": who_command,
    "top": top_command,
    "peer": peer_command,
    "break": break_command,
    "resize": resize_command,
    "abandon-majority": abandon_command,
    "where": where_command,
    "setup": setup_command,
    "torture": torture_command,
}


def careful_with_stdout(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """End with exit code 141 if stdout is closed, as by `| head`, and with one line and 1 if it cannot be written to.

    Typer would turn a closed pipe into exit code 1.
    """

    @wraps(command)
    def careful(*args: Any, **kwargs: Any) -> int | None:
        try:
            code = command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            silence_stdout()
            return CLOSED_PIPE
        except OSError as wrong:
            if wrong.errno not in FULL:
                raise
            silence_stdout()
            complain(f"cannot write the output: {wrong.strerror}")
            return WRONG
        return code

    return careful


def silence_stdout() -> None:
    """Python flushes stdout once more at exit, and would report the error again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


PASSED_ON = {  # `run` parses its arguments itself
    "ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False, "help_option_names": [],
}  # fmt: skip
UNKNOWN_KEPT = {"ignore_unknown_options": True}  # `sweep` takes most options of `sim`
GROUPS: dict[str, tuple[str, Mapping[str, Callable[..., int | None]]]] = {  # `fairgate NAME COMMAND`
    "keys": ("Create the TLS certificates for a cluster of several hosts.", KEYS_COMMANDS),
    "lab": ("Make the figures and tables of the papers, with a verdict on each claim.", LAB_COMMANDS),
}


def add_commands(target: typer.Typer, commands: Mapping[str, Callable[..., int | None]]) -> None:
    for name, command in commands.items():
        target.command(name)(careful_with_stdout(command))


def run_command(ctx: typer.Context) -> int:
    """Run a command inside a gate, at most k at a time: flock(1) with a fair queue."""
    return run_arguments(ctx.args)


def help_if_alone(ctx: typer.Context) -> None:
    """Print the help if no subcommand was given."""
    if ctx.invoked_subcommand is None:
        help = ctx.get_help()  # with rich, this prints the help and returns an empty string
        if help:
            typer.echo(help)


add_commands(app, COMMANDS)
app.command("run", context_settings=PASSED_ON)(careful_with_stdout(run_command))
app.command("sweep", context_settings=UNKNOWN_KEPT)(careful_with_stdout(sweep_command))
for group, (about, commands) in GROUPS.items():
    inner = typer.Typer(help=about)
    inner.callback(invoke_without_command=True)(help_if_alone)
    add_commands(inner, commands)
    app.add_typer(inner, name=group)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairgate {__version__} ({kind_of_build()})")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog="Start with: fairgate demo")
def fairgate(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Fair distributed locks and k-semaphores without a server: at most k processes are inside a gate at a time."""
    help_if_alone(ctx)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    open_missing_streams()
    try:
        code = careful_with_stdout(app)(args=list(arguments), prog_name="fairgate", standalone_mode=False)
    except SystemExit:  # Typer was printing help, and stdout was closed
        silence_stdout()
        return CLOSED_PIPE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except ReplayError as different:
        complain(different)
        return WRONG
    except (BadInput, JournalError, ScenarioError) as wrong:
        complain(wrong)
        return BAD_INPUT
    except FairgateError as wrong:
        complain(wrong)
        return WRONG
    except UsageError as wrong:
        complain(usage(wrong))
        return BAD_INPUT
    return code or GOOD


def open_missing_streams() -> None:
    """Where a stream is closed (`>&-`), Python has None, and the next file that is opened would get its number."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+", encoding="utf-8"))  # noqa: SIM115 (until the end)


PLAINER = {  # what Typer says
    "Input should be a valid integer, unable to parse string as an integer": "it must be a whole number",
    "Input should be a valid number, unable to parse string as a number": "it must be a number",
}


def usage(wrong: Any) -> str:
    """The message of a usage error as one line, with a pointer to the help."""
    said = " ".join(str(wrong.format_message()).split()).rstrip(".")
    for long, short in PLAINER.items():
        said = said.replace(long, short)
    where = wrong.ctx.command_path if wrong.ctx is not None else "fairgate"
    return f"{said[:1].lower()}{said[1:]} (see {where} --help)"
