"""`fairgate demo`: watch eight processes share a gate."""

import os
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from fairgate.cli.demo.gates import DemoGate, demo_gate
from fairgate.cli.demo.processes import INSIDE, JOINS, THINKS, WAITS, DemoOutcome, DemoPeer, fork, outcome
from fairgate.cli.demo.simulated import simulated_demo
from fairgate.cli.exits import GOOD, INTERRUPTED, WRONG, cleaning_up_on_sigterm, complain
from fairgate.cli.screen import number, plain_table, seconds, stdout
from fairgate.errors import BadInput
from fairgate.sim.run import kind_of_build

PEERS = 8
THINKING, STAYING = (0.0, 0.12), (0.05, 0.15)  # seconds; drawn uniformly from the range
PLAY = 5.0  # seconds, from the moment when all have joined
LATEST, END = 8.0, 14.0  # seconds: stop even if not all have joined (slow machine); kill the processes that still run
REDRAW, TELL = 0.1, 0.5  # seconds between updates, on a terminal and elsewhere
STYLES = {INSIDE: "bold green", WAITS: "yellow", THINKS: "dim", JOINS: "dim"}


def demo_command(
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Instead, simulate 100 nodes under a fair and an unfair protocol.")
    ] = False,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            show_default=False,
            help="Let the processes run this protocol as a cluster, over Unix sockets. `fairgate protocols` lists all.",
        ),
    ] = None,
) -> int:
    """Watch eight processes share a gate that admits three at a time. Takes a few seconds."""
    if simulated and protocol:
        raise BadInput("--protocol is for the live demo, which --simulated replaces: use only one of them")
    return simulated_demo() if simulated else live_demo(protocol)


def live_demo(protocol: str | None) -> int:
    console = stdout()
    with cleaning_up_on_sigterm(), TemporaryDirectory(prefix="fairgate") as folder:
        return show_gate(console, demo_gate(Path(folder).resolve(), protocol))


def show_gate(console: Console, gate: DemoGate) -> int:
    # Signals wait until every forked process is recorded and can be ended.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    console.print(
        f"{PEERS} processes share a gate that admits {gate.k} at a time. Each thinks for a moment, waits for the gate,"
        f" stays inside for up to {STAYING[1]:g} s, and starts again. {gate.describe()} They run fairgate's"
        f" {kind_of_build()} modules.\n"
    )
    demo = DemoRun(gate, mask)
    interrupted = False
    try:
        with shown(console, demo) as show:
            demo.watch(show)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        stuck = demo.end()
    found = outcome(demo.peers)
    console.print(summary(found, gate), "", verdict(found, gate, interrupted), sep="\n")
    if stuck:
        complain(f"{len(stuck)} of the processes did not end in time and were killed")
    if interrupted:
        return INTERRUPTED
    console.print(hints())
    return WRONG if stuck or not found.total or found.most_inside > gate.k else GOOD


class DemoRun:
    def __init__(self, gate: DemoGate, mask: set[int]) -> None:
        """Fork the processes. Signals stay blocked until `watch` restores `mask`: a Ctrl-C halfway through would leave
        processes behind that nobody can tell to end."""
        self.began = time.monotonic()
        self.mask = mask
        self.gate = gate
        self.keepers = [Keeper(gate)] if gate.keeper else []
        self.stop = os.pipe()
        self.peers = [fork(1 + i, self.stop, partial(use_gate, gate)) for i in range(PEERS)]
        self.open = {peer.file: peer for peer in self.peers}

    def watch(self, show: Callable[[], None]) -> None:
        """Follow the processes until the demo is over, or all of them have ended."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
        over_at = self.began + LATEST
        complete = False
        while self.open and time.monotonic() < over_at:
            self.hear(REDRAW)
            show()
            if not complete and all(peer.state != JOINS for peer in self.peers):
                complete = True
                over_at = min(over_at, time.monotonic() + PLAY)

    def hear(self, patience: float) -> None:
        for file in select.select(list(self.open), [], [], patience)[0]:
            if not self.open[file].hear():
                del self.open[file]

    def end(self) -> list[DemoPeer]:
        """Tell all processes to end and wait for them. Returns those that had to be killed."""
        os.close(self.stop[1])
        with suppress(KeyboardInterrupt):  # Ctrl-C again: stop waiting
            while self.open and time.monotonic() < self.began + END:
                self.hear(REDRAW)
        stuck = list(self.open.values())
        for peer in self.peers:
            if peer in stuck:
                os.kill(peer.pid, signal.SIGKILL)
            reap(peer)
        os.close(self.stop[0])
        for keeper in self.keepers:
            keeper.end()
        return stuck


class Keeper:
    """The process that keeps the list of peers of a cluster. It comes first and leaves last."""

    def __init__(self, gate: DemoGate) -> None:
        self.stop = os.pipe()
        self.process = fork(0, self.stop, partial(keep_list, gate))
        while self.process.state == JOINS and self.process.hear():
            pass

    def end(self) -> None:
        """The others have inherited its pipe, so this counts once all of them have ended."""
        os.close(self.stop[1])
        with suppress(KeyboardInterrupt):
            while self.process.hear():
                pass
        reap(self.process)
        os.close(self.stop[0])


def reap(process: DemoPeer) -> None:
    os.waitpid(process.pid, 0)
    os.close(process.file)


def keep_list(gate: DemoGate, tell: Callable[..., None], goes_on: Callable[[float], bool]) -> None:
    with gate.keep():
        tell(THINKS)
        while goes_on(END):
            pass


def use_gate(shared: DemoGate, tell: Callable[..., None], goes_on: Callable[[float], bool]) -> None:
    """The work of each process. It reports its entry after the grant and its exit before the release, so that the stays
    it reports lie within the real ones."""
    with shared.join() as peer:
        gate = shared.open(peer)
        tell(THINKS)
        while goes_on(random.uniform(*THINKING)):
            tell(WAITS)
            with gate as permit:
                tell(INSIDE, slot=permit.slot)
                goes_on(random.uniform(*STAYING))
                tell(THINKS, messages=gate.statistics().messages_sent)


# Output.


@contextmanager
def shown(console: Console, demo: DemoRun) -> Iterator[Callable[[], None]]:
    """Yields a function that shows the current state: as a table on a terminal, else as a line now and then."""
    if sys.stdout.isatty() and not console.is_dumb_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            yield lambda: live.update(peers_table(demo), refresh=True)
        return
    last = 0.0

    def line() -> None:
        nonlocal last
        elapsed = time.monotonic() - demo.began
        if elapsed - last >= TELL:
            last = elapsed
            states = [f"{state} {', '.join(numbers(demo, state)) or '-'}" for state in (INSIDE, WAITS, THINKS)]
            console.print(f"{elapsed:5.1f} s  {'; '.join(states)}", style=None)

    yield line


def numbers(demo: DemoRun, state: str) -> list[str]:
    return [str(peer.number) for peer in demo.peers if peer.state == state]


def peers_table(demo: DemoRun) -> Table:
    now = time.monotonic()
    table = plain_table(f"{len(numbers(demo, INSIDE))} of {demo.gate.k} inside, {now - demo.began:.1f} s")
    for name in ("peer", "pid", "", "slot", "for", "entries"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for peer in demo.peers:
        state = Text(peer.state, style=STYLES[peer.state])
        slot = "" if peer.slot is None else str(peer.slot)
        since = f"{max(now - peer.since, 0.0):.2f} s"
        table.add_row(str(peer.number), str(peer.pid), state, slot, since, str(len(peer.entries)))
    return table


def summary(found: DemoOutcome, gate: DemoGate) -> Table:
    table = plain_table(f"{found.total:,} entries by {len(found.entries)} processes")
    table.add_column("")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", style="dim")
    waits = found.waits or [0.0]
    most = f"{found.most_inside} of {gate.k}"
    table.add_row("most inside", most, "at the same time, by the times the processes reported")
    table.add_row("entries per process", f"{min(found.entries)} to {max(found.entries)}", "fewest and most")
    table.add_row("mean wait", seconds(sum(waits) / len(waits)), "from request to entry")
    table.add_row("longest wait", seconds(max(waits)), "of all entries")
    if gate.messages:
        messages = number(found.messages / max(found.total, 1))
        table.add_row("messages per entry", messages, "between processes, including those to join")
    return table


def verdict(found: DemoOutcome, gate: DemoGate, interrupted: bool) -> Text:
    until = " until it was interrupted" if interrupted else ""
    if found.most_inside > gate.k:
        return Text(f"violation: {found.most_inside} were inside at once{until}", style="bold red")
    if not found.total:
        return Text(f"no process entered{until}", style="bold red" if not interrupted else "yellow")
    return Text(f"no violation{until}: never more than {gate.k} inside", style="bold green")


def hints() -> Group:
    lines = (
        "fairgate run gpu -k 3 -- sh -c 'echo slot $FAIRGATE_SLOT; sleep 5'   (in several terminals)",
        "fairgate who",
        "fairgate demo --protocol fair_k",
        "fairgate demo --simulated",
        "fairgate sim fair_k --nodes 1000 --k 10 --latency wan",
    )
    return Group("\nTry next:", Padding(Text("\n".join(lines), style="cyan"), (0, 0, 0, 2)))
