"""`fairgate torture`: a real cluster under random faults, and whether it kept its promises."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from fairgate.arguments import MOST_K, check_k, check_seed
from fairgate.cli.exits import GOOD, WRONG, cleaning_up_on_sigterm, complain
from fairgate.cli.options import duration
from fairgate.cli.screen import counted, number, plain_table, progress_bar, stdout
from fairgate.errors import BadInput

if TYPE_CHECKING:
    from fairgate.torture.judgement import Verdict

MOST_HOSTS = 50
FEWEST_HOSTS = 3  # with fewer, no host can be lost


def torture_command(
    hosts: Annotated[int, typer.Option("--hosts", metavar="N", help="Number of hosts, each with a standing peer.")] = 5,
    guests: Annotated[int, typer.Option("--guests", metavar="N", help="Number of guests, on all hosts together.")] = 7,
    k: Annotated[int, typer.Option("-k", "--k", metavar="K", help=f"Permits of the gate, 1 to {MOST_K}.")] = 3,
    minutes: Annotated[float, typer.Option("--minutes", metavar="M", help="How long faults happen.")] = 5.0,
    lease: Annotated[float, duration("--lease", "The lease of the cluster.", shown=True)] = 2.0,
    every: Annotated[float, duration("--every", "Mean time between two faults.", shown=True)] = 1.0,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the random choices.")] = 1,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every fault.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> int:
    """Run a real cluster under random faults, and check what its processes saw.

    Every host has a directory, a standing peer and guests of its own. For root,
    it also has a network of its own (a network namespace): then hosts are also
    cut off, in one direction or both. Peers and guests are killed (kill -9),
    stopped for longer than a lease, and started again; a majority of the peers
    is always left alone. In the end there is peace, and everyone must be served.

    The exit status is 1 if a slot was ever used by two guests, a fence did not
    rise, a slot or a guest was forgotten, or a slot stayed free for too long
    although somebody was waiting. That is half a second, or a lease and a second
    after something happened to a peer, and another three quarters of a lease if
    only some of the others could not reach it. The logs are kept then.

        fairgate torture --minutes 1
    """
    check(hosts, guests, k, minutes, lease, every, seed)
    from fairgate.torture.run import Settings, Torture  # noqa: PLC0415 (the sockets and keys of live peers)

    torture = Torture(Settings(hosts, guests, k, minutes, seed, lease, every), print if verbose else lambda _: None)
    with cleaning_up_on_sigterm(), progress_bar("torture, seconds", int(minutes * 60)) as done:
        verdict = torture.run(lambda seconds: done(int(seconds)))
    if as_json:
        print(json.dumps({"wrong": verdict.wrong, "faults": verdict.faults, **verdict.figures()}))
    else:
        show(verdict)
    for wrong in verdict.wrong[:20]:
        complain(wrong)
    if verdict.wrong:
        complain(f"found {counted(len(verdict.wrong), 'broken promise')}; the logs are in {verdict.folder}")
    return WRONG if verdict.wrong else GOOD


def show(verdict: "Verdict") -> None:
    table = plain_table("What happened")
    table.add_column("")
    table.add_column("", justify="right")
    for what, count in sorted(verdict.faults.items()):
        table.add_row(what, number(count))
    for what, figure in verdict.figures().items():
        table.add_row(what.replace("_", " "), number(figure))
    stdout().print(table)


def check(hosts: int, guests: int, k: int, minutes: float, lease: float, every: float, seed: int) -> None:
    check_k(k)
    check_seed(seed)
    if not FEWEST_HOSTS <= hosts <= MOST_HOSTS:
        raise BadInput(f"--hosts must be {FEWEST_HOSTS} to {MOST_HOSTS}, not {hosts}")
    if guests <= k:
        raise BadInput(f"--guests must be more than k ({k}), not {guests}: otherwise nobody would have to wait")
    for name, value in (("minutes", minutes), ("lease", lease), ("every", every)):
        if not 0 < value < 1e6:
            raise BadInput(f"--{name} must be more than 0, not {value:g}")
