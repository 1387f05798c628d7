"""The words of `fairgate run`. By argparse, which is there in a tenth of the time that typer takes."""

import argparse
import math
from collections.abc import Sequence
from typing import NoReturn

from fairgate.cli.exits import WRONG
from fairgate.cli.network.options import BETWEEN_HOSTS, JOIN_OPTIONS, OBSERVE_OPTIONS, add_options
from fairgate.cli.network.settings import NetworkSettings
from fairgate.errors import BadInput
from fairgate.live.live_protocols import MANY, ONE
from fairgate.live.supervisor import IGNORE, KILL, TERM

GRACE = 5.0  # seconds
HELP = "run COMMAND inside of a gate: a better flock(1)"
WHAT = """\
Run COMMAND when the gate lets us in: at most k at a time on this host, first come, first served, with no set-up and no
server. Its exit status is ours (128 + the signal if it died of one); stdin, stdout, stderr and other open files are
passed on untouched. The command runs in a process group of its own, has the terminal if we have it, and gets the
signals that we get (TERM, INT, HUP, QUIT, USR1, USR2). Its environment tells it FAIRGATE_GATE, FAIRGATE_SLOT (0 to
k-1), FAIRGATE_FENCE (a number that rises with every permit of that slot) and, with --lease, FAIRGATE_DEADLINE (seconds
since 1970); slot and fence are empty if the protocol has none.
"""
MORE = f"""\
Background processes. As with flock, the slot is taken until the last process that the command started is gone, even if
fairgate was killed with -9 (then the command itself dies, but not what it started). Else two could be inside without
knowing. What leaves the process group and closes its files is not seen. -o counts the command alone. Without --lease
fairgate ends with the command, and the slot is freed later; with --lease it stays to end what is left.

Ctrl-Z stops command and fairgate. Inside, the slot stays taken, and the others go on without us; while waiting,
we lose our place in the queue and ask again when continued.

Exit codes of our own: 1 (or -E) not let in, 2 bad input, 126 cannot be run, 127 not found.

  fairgate run backup -- rsync -a src/ dst/
  fairgate run gpu -k 3 -- sh -c 'CUDA_VISIBLE_DEVICES=$FAIRGATE_SLOT python train.py'
  fairgate run report -n -E 0 -- make report       # somebody makes it already: fine

{BETWEEN_HOSTS}
There fairgate stays until all that the command started is gone, because nobody else knows of it, and Ctrl-Z may hold up
the gate until fg.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{message} (see fairgate run --help)")


class Options(argparse.Namespace):
    gate: str
    k: int
    now: bool
    wait: float | None
    code: int
    lease: float | None
    grace: float | None
    on_lost: str
    close: bool
    protocol: str | None
    net: NetworkSettings
    command: list[str]


def parser() -> Parser:
    parser = Parser(
        prog="fairgate run",
        usage="fairgate run GATE [options] -- COMMAND...",
        description=WHAT,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("gate", metavar="GATE", help="its name")
    parser.add_argument("-k", type=int, default=1, metavar="K", help="how many it lets in: 1 if left out")
    patience = parser.add_mutually_exclusive_group()
    patience.add_argument("-n", "--nonblock", dest="now", action="store_true", help="fail at once if no slot is free")
    patience.add_argument("-w", "--wait", type=seconds, metavar="SECONDS", help="fail after so long; 0 is as -n")
    parser.add_argument("-E", "--conflict-exit-code", dest="code", type=exit_code, default=WRONG, metavar="CODE",
                        help="the exit code when not let in: 1 if left out")  # fmt: skip
    parser.add_argument("-o", "--close", action="store_true", help="what the command starts and leaves does not count")
    parser.add_argument("--lease", type=seconds, metavar="SECONDS", help="the longest that it may be inside")
    parser.add_argument("--grace", type=seconds, metavar="SECONDS",
                        help=f"between SIGTERM and SIGKILL: {GRACE:g}, or half the lease if that is less")  # fmt: skip
    parser.add_argument("--on-lost", choices=(TERM, KILL, IGNORE), default=TERM,
                        help="what is done to its process group when the lease is about to end, or the permit is lost:"
                             " SIGTERM and, after --grace, SIGKILL (term), SIGKILL (kill), nothing")  # fmt: skip
    parser.add_argument("--protocol", metavar="NAME", help=f"{ONE} for one, {MANY} for more if left out")
    add_options(parser.add_argument_group("what it tells of itself"), OBSERVE_OPTIONS)
    add_options(parser.add_argument_group("between hosts"), JOIN_OPTIONS)
    return parser


def read_options(arguments: Sequence[str]) -> Options:
    """BadInput if they make no sense."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:split], Options())
    options.command = list(arguments[split + 1 :])
    options.net = NetworkSettings.of({name: getattr(options, name) for name in (*JOIN_OPTIONS, *OBSERVE_OPTIONS)})
    options.net.check()
    if not options.command:
        raise BadInput("write the command after --: fairgate run GATE -- COMMAND (see fairgate run --help)")
    if options.lease == 0:
        raise BadInput("--lease must be more than 0")
    if options.grace is None:
        options.grace = min(GRACE, (options.lease or math.inf) / 2)
    if options.lease is not None and options.grace > options.lease:
        raise BadInput(f"--grace {options.grace:g} is longer than --lease {options.lease:g}")
    options.now = options.now or options.wait == 0
    return options


def seconds(word: str) -> float:
    value = float(word)
    if not (value >= 0 and math.isfinite(value)):
        raise ValueError
    return value


def exit_code(word: str) -> int:
    value = int(word)
    if not 0 <= value <= 255:
        raise ValueError
    return value
