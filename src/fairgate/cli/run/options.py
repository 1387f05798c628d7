"""The options of `fairgate run`. They are parsed by argparse, which imports in a tenth of the time that typer takes."""

import argparse
import math
import shlex
from collections.abc import Sequence
from typing import NoReturn

from fairgate.arguments import LONGEST, MOST_K, check_k
from fairgate.cli.exits import WRONG
from fairgate.cli.network.options import BETWEEN_HOSTS, JOIN_OPTIONS, OBSERVE_OPTIONS, add_options
from fairgate.cli.network.settings import NetworkSettings
from fairgate.errors import BadInput
from fairgate.live.live_protocols import MANY, ONE
from fairgate.live.supervisor import IGNORE, KILL, TERM

GRACE = 5.0  # seconds
WHAT = """\
Wait for a free slot of GATE, run COMMAND, and free the slot when COMMAND ends. At most K commands
are inside a gate at a time (-k); the others wait, first come, first served. It is like flock(1) with
a fair queue and up to K holders, or GNU parallel's sem. There is no server to run and no file to
create: a gate opens when it is first used. Every command on this host that names the same GATE
shares it, and all must give the same K.

examples:
  One backup at a time:
    fairgate run backup -- rsync -a src/ dst/
  Three jobs at a time, each on its own GPU (FAIRGATE_SLOT is 0, 1 or 2):
    fairgate run gpu -k 3 -- sh -c 'CUDA_VISIBLE_DEVICES=$FAIRGATE_SLOT python train.py'
  Skip the report if it is already being built:
    fairgate run report -n -E 0 -- make report
  Wait at most 10 minutes for the gate, then run for at most an hour (SIGTERM 5 s before it is over):
    fairgate run import -w 600 --lease 3600 -- ./import.sh
"""
MORE = f"""\
environment of COMMAND:
  FAIRGATE_GATE      the name of the gate
  FAIRGATE_SLOT      the slot, 0 to K-1; no two commands inside the gate have the same slot
  FAIRGATE_FENCE     a number that rises with every permit for that slot, so that a resource can
                     reject a command that lost its permit
  FAIRGATE_DEADLINE  with --lease: when the lease ends, in seconds since 1970
SLOT and FENCE are empty if the protocol has none (see `fairgate protocols`).

environment of fairgate:
  FAIRGATE_DIR  the directory in which the processes of this host meet. Default: /run/fairgate if an
                administrator has created it for a group you are in, else a directory of your own under
                $XDG_RUNTIME_DIR or ~/.local/state. Different directories mean different gates.

exit status:
  that of COMMAND, or 128 + N if signal N killed it. From fairgate itself:
    1          no slot became free in time (-E sets another code), or fairgate failed
    2          bad options or arguments
    126, 127   COMMAND cannot be executed, or was not found
    128 + N    signal N ended fairgate while it waited for the gate

signals and terminal:
  COMMAND runs in its own process group. It inherits stdin, stdout, stderr and all other open files,
  and takes over the terminal if fairgate is in the foreground. fairgate forwards TERM, INT, HUP, QUIT,
  USR1 and USR2 to the group. Ctrl-Z stops COMMAND and fairgate: a command that is inside keeps its slot,
  and the gate goes on without it; a fairgate that is still waiting loses its place in the queue and
  queues again when it is continued.

background processes:
  As with flock, the slot stays taken until the last process that COMMAND started has ended, even if
  fairgate was killed with SIGKILL (that kills COMMAND too, but not the processes COMMAND started).
  A process that leaves the process group and also closes its inherited files (a daemon) is not noticed.
  With -o only COMMAND itself counts. Without --lease, fairgate exits when COMMAND ends, and the slot is
  freed later; with --lease, fairgate stays and ends what is left when the lease is over.

{BETWEEN_HOSTS}
  In a cluster, fairgate stays until every process that COMMAND started has ended, because no other peer
  can watch them. After Ctrl-Z the gate may stand still until the job is continued.
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
        usage="fairgate run GATE [options] -- COMMAND [ARG]...",
        description=WHAT,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("gate", metavar="GATE", help="name of the gate")
    parser.add_argument("-k", type=int, default=1, metavar="K",
                        help=f"number of commands that may be inside at once, 1 to {MOST_K} (default: 1)")  # fmt: skip
    patience = parser.add_mutually_exclusive_group()
    patience.add_argument("-n", "--nonblock", dest="now", action="store_true",
                          help="do not wait: fail at once if no slot is free (see -E)")  # fmt: skip
    patience.add_argument("-w", "--wait", type=seconds, metavar="SECONDS",
                          help="fail if no slot becomes free within SECONDS (see -E); 0 is the same as -n"
                               " (default: wait forever)")  # fmt: skip
    parser.add_argument("-E", "--conflict-exit-code", dest="code", type=exit_code, default=WRONG, metavar="CODE",
                        help="exit status if -n or -w fails, 0 to 255 (default: 1)")  # fmt: skip
    parser.add_argument("-o", "--close", action="store_true",
                        help="free the slot when COMMAND ends, even if processes that it started are still"
                             " running")  # fmt: skip
    parser.add_argument("--lease", type=seconds, metavar="SECONDS",
                        help="longest time that COMMAND may be inside. It gets SIGTERM before the lease ends: see"
                             " --grace and --on-lost (default: no limit)")  # fmt: skip
    parser.add_argument("--grace", type=seconds, metavar="SECONDS",
                        help="time from SIGTERM to SIGKILL when COMMAND is terminated; it is part of the lease"
                             f" (default: {GRACE:g}, or half the lease if that is less)")  # fmt: skip
    parser.add_argument("--on-lost", choices=(TERM, KILL, IGNORE), default=TERM,
                        help="what happens to COMMAND's process group when its lease is about to end, or its permit is"
                             " lost (for example by `fairgate break`). term: SIGTERM, and SIGKILL after --grace; kill:"
                             " SIGKILL; ignore: nothing (default: term)")  # fmt: skip
    parser.add_argument("--protocol", metavar="NAME",
                        help="algorithm that orders the entries; `fairgate protocols` lists them"
                             f" (default: {ONE} if K is 1, else {MANY})")  # fmt: skip
    add_options(parser.add_argument_group("monitoring"), OBSERVE_OPTIONS)
    add_options(parser.add_argument_group("several hosts (see below)"), JOIN_OPTIONS)
    return parser


def read_options(arguments: Sequence[str]) -> Options:
    """Parse and check the command line. Raises BadInput if an option or a combination of options is invalid."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options, unknown = parser().parse_known_args(arguments[:split], Options())
    if unknown:
        hint = "" if "--" in arguments else ": write the command after --, as in fairgate run GATE -- COMMAND"
        raise BadInput(f"unrecognized arguments: {shlex.join(unknown)}{hint} (see fairgate run --help)")
    options.command = list(arguments[split + 1 :])
    check_k(options.k)
    options.net = NetworkSettings.of({name: getattr(options, name) for name in (*JOIN_OPTIONS, *OBSERVE_OPTIONS)})
    options.net.check()
    if not options.command:
        raise BadInput(
            "no command given: write it after --, as in fairgate run GATE -- COMMAND (see fairgate run --help)"
        )
    if options.lease == 0:
        raise BadInput("--lease must be more than 0 seconds")
    if options.grace is None:
        options.grace = min(GRACE, (options.lease or math.inf) / 2)
    if options.lease is not None and options.grace > options.lease:
        raise BadInput(f"--grace {options.grace:g} must not be longer than --lease {options.lease:g}")
    options.now = options.now or options.wait == 0
    return options


def seconds(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= LONGEST:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, 0 to {LONGEST:g}, not {word!r}")
    return value


def exit_code(word: str) -> int:
    try:
        value = int(word)
    except ValueError:
        value = -1
    if not 0 <= value <= 255:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 255, not {word!r}")
    return value
