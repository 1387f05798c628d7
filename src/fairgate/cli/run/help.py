"""The help of `fairgate run`."""

import argparse

from fairgate.cli.network.options import BETWEEN_HOSTS
from fairgate.cli.run.cluster_options import CLUSTER_OPTIONS
from fairgate.cli.run.options import OPTIONS

WHAT = """\
Wait for a free slot of GATE, run COMMAND, and free the slot when COMMAND ends. At most K commands
are inside a gate at a time (-k); the others wait, first come, first served. It is like flock(1) with
a fair queue and up to K holders, or GNU parallel's sem. There is no server to run and no file to
create: a gate opens when it is first used. All your commands on this host that name the same GATE
share it, and all must give the same K. A GATE with a slash is the path of a file, as with flock:
everyone who can write to its directory can share it.

examples:
  One backup at a time:
    fairgate run backup -- rsync -a src/ dst/
  Three jobs at a time, each on its own GPU (FAIRGATE_SLOT is 0, 1 or 2):
    fairgate run gpu -k 3 -- sh -c 'CUDA_VISIBLE_DEVICES=$FAIRGATE_SLOT python train.py'
  A job that takes two of the GPUs (FAIRGATE_SLOTS is 0,1 or 0,2 or 1,2):
    fairgate run gpu -k 3 --permits 2 -- sh -c 'CUDA_VISIBLE_DEVICES=$FAIRGATE_SLOTS python train.py'
  Skip the report if it is already being built:
    fairgate run report -n -E 0 -- make report
  Wait at most 10 minutes for the gate, then run for at most an hour (SIGTERM 5 s before it is over):
    fairgate run import -w 10m --lease 1h -- ./import.sh
"""
MORE = f"""\
durations:
  A DURATION is a number of seconds, or has units, as in 500ms, 10m or 1h30m.

environment of COMMAND:
  FAIRGATE_GATE      the name of the gate
  FAIRGATE_SLOT      the slot, 0 to K-1; no two commands inside the gate have the same slot. With
                     --permits it is the lowest one
  FAIRGATE_SLOTS     all slots, as in 0,2
  FAIRGATE_FENCE     a number that rises with every permit for that slot, so that a resource can
                     reject a command that lost its permit
  FAIRGATE_DEADLINE  with --lease: when the lease ends, in seconds since 1970
  FAIRGATE_HELD      the gates that COMMAND is inside; a nested `fairgate run` reads it
In a cluster, SLOT, SLOTS and FENCE are empty if the protocol has none (see `fairgate protocols`).

environment of fairgate:
  FAIRGATE_DIR  the directory in which the processes of this host meet. `fairgate where` prints the
                default. Different directories mean different gates.

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
  and the gate goes on without it. A fairgate that is stopped while it waits keeps its place in the queue;
  the others pass it until it is continued.

nested use:
  If COMMAND itself runs `fairgate run` with the same gate of this host, that one does not wait, which
  could take forever: it prints a note and runs at once, in the slot that COMMAND has. With --no-nested
  it fails. A daemon that COMMAND has left behind waits like any other process. In a cluster nested use
  is for guests; others wait for a slot of their own.

background processes:
  As with flock, the slot stays taken until the last process that COMMAND started has ended, even if
  fairgate was killed with SIGKILL (that kills COMMAND too, but not the processes COMMAND started).
  A process that leaves the process group and also closes its inherited files (a daemon) is not noticed.
  With -o only COMMAND itself counts. Without --lease, fairgate exits when COMMAND ends, and the slot is
  freed later; with --lease, fairgate stays and ends what is left when the lease is over.

{BETWEEN_HOSTS}
  In a cluster, fairgate stays until every process that COMMAND started has ended, because no other peer
  can watch them. After Ctrl-Z the gate may stand still until the job is continued; a fairgate that is
  still waiting leaves the queue and queues again when it is continued.
"""


def parser() -> argparse.ArgumentParser:
    """It only prints the help: options.py parses."""
    parser = argparse.ArgumentParser(
        prog="fairgate run",
        usage="fairgate run GATE [options] -- COMMAND [ARG]...",
        description=WHAT,
        epilog=MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("gate", metavar="GATE", help="name of the gate, or the path of its file")
    cluster = parser.add_argument_group("clusters (see below)")
    for group, options in ((parser, OPTIONS), (cluster, CLUSTER_OPTIONS)):
        for option in options:
            if option.metavar:
                group.add_argument(*option.names, dest=option.field, metavar=option.metavar, help=option.help)
            else:
                group.add_argument(*option.names, dest=option.field, action="store_true", help=option.help)
    return parser
