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

from fairgate import sync
from fairgate.cli.demo.simulated import simulated_demo
from fairgate.cli.exits import GOOD, INTERRUPTED, WRONG, complain
from fairgate.cli.screen import number, plain_table, seconds, stdout
from fairgate.live.demo_peers import INSIDE, JOINS, THINKS, WAITS, DemoOutcome, DemoPeer, fork, outcome
from fairgate.live.engine import LiveEngine
from fairgate.live.on_host import HostMembership
from fairgate.net.access import Access, access
from fairgate.sim.run import kind_of_build

PEERS, K = 8, 3
THINKING, STAYING = (0.0, 0.12), (0.05, 0.15)  # seconds; drawn uniformly from the range
PLAY = 5.0  # seconds, from the moment when all have joined
LATEST, END = 8.0, 14.0  # seconds: stop even if not all have joined (slow machine); kill the processes that still run
REDRAW, TELL = 0.1, 0.5  # seconds between updates, on a terminal and elsewhere
STYLES = {INSIDE: "bold green", WAITS: "yellow", THINKS: "dim", JOINS: "dim"}


def demo_command(
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Instead, simulate 100 nodes under a fair and an unfair protocol.")
    ] = False,
) -> int:
    """Watch eight processes share a gate that admits three at a time. Takes a few seconds."""
    return simulated_demo() if simulated else live_demo()


def live_demo() -> int:
    console = stdout()
    # SIGINT waits until every forked process is recorded and can be ended.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    console.print(
        f"{PEERS} processes share a gate that admits {K} at a time. Each thinks for a moment, waits for the gate, stays"
        f" inside for up to {STAYING[1]:g} s, and starts again. There is no server: the processes meet in a temporary"
        f" directory. They run fairgate's {kind_of_build()} modules.\n"
    )
    with TemporaryDirectory(prefix="fairgate") as folder:
        demo = DemoRun(access(Path(folder).resolve()), mask)
        interrupted = False
        try:
            with shown(console, demo) as show:
                demo.watch(show)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            stuck = demo.end()
    found = outcome(demo.peers)
    console.print(summary(found), "", verdict(found, interrupted), sep="\n")
    if stuck:
        complain(f"{len(stuck)} of the processes did not end in time and were killed")
    if interrupted:
        return INTERRUPTED
    console.print(hints())
    return WRONG if stuck or not found.total or found.most_inside > K else GOOD


class DemoRun:
    def __init__(self, rule: Access, mask: set[int]) -> None:
        """Fork the processes. SIGINT stays blocked until `watch` restores `mask`: a Ctrl-C halfway through would leave
        processes behind that nobody can tell to end."""
        self.began = time.monotonic()
        self.mask = mask
        self.stop = os.pipe()
        self.peers = [fork(1 + i, self.stop, lambda *ways: use_gate(rule, *ways)) for i in range(PEERS)]
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
            os.waitpid(peer.pid, 0)
            os.close(peer.file)
        os.close(self.stop[0])
        return stuck


def use_gate(rule: Access, tell: Callable[..., None], goes_on: Callable[[float], bool]) -> None:
    """The work of each process. It reports its entry after the grant and its exit before the release, so that the stays
    it reports lie within the real ones."""
    engine = LiveEngine(partial(HostMembership, rule=rule))
    engine.start()
    with sync.Peer(engine) as peer:
        gate = peer.semaphore("demo", K)
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
    table = plain_table(f"{len(numbers(demo, INSIDE))} of {K} inside, {now - demo.began:.1f} s")
    for name in ("peer", "pid", "", "slot", "for", "entries"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for peer in demo.peers:
        state = Text(peer.state, style=STYLES[peer.state])
        slot = "" if peer.slot is None else str(peer.slot)
        since = f"{max(now - peer.since, 0.0):.2f} s"
        table.add_row(str(peer.number), str(peer.pid), state, slot, since, str(len(peer.entries)))
    return table


def summary(found: DemoOutcome) -> Table:
    table = plain_table(f"{found.total:,} entries by {len(found.entries)} processes")
    table.add_column("")
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", style="dim")
    waits = found.waits or [0.0]
    table.add_row("most inside", f"{found.most_inside} of {K}", "at the same time, by the times the processes reported")
    table.add_row("entries per process", f"{min(found.entries)} to {max(found.entries)}", "fewest and most")
    table.add_row("mean wait", seconds(sum(waits) / len(waits)), "from request to entry")
    table.add_row("longest wait", seconds(max(waits)), "of all entries")
    table.add_row(
        "messages per entry", number(found.messages / max(found.total, 1)), "between processes, including those to join"
    )
    return table


def verdict(found: DemoOutcome, interrupted: bool) -> Text:
    until = " until it was interrupted" if interrupted else ""
    if found.most_inside > K:
        return Text(f"violation: {found.most_inside} were inside at once{until}", style="bold red")
    if not found.total:
        return Text(f"no process entered{until}", style="bold red" if not interrupted else "yellow")
    return Text(f"no violation{until}: never more than {K} inside", style="bold green")


def hints() -> Group:
    lines = (
        "fairgate run gpu -k 3 -- sh -c 'echo slot $FAIRGATE_SLOT; sleep 5'   (in several terminals)",
        "fairgate who",
        "fairgate demo --simulated",
        "fairgate sim fair_k --nodes 1000 --k 10 --latency wan",
    )
    return Group("\nTry next:", Padding(Text("\n".join(lines), style="cyan"), (0, 0, 0, 2)))
