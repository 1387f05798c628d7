"""Machine instructions per simulated event, counted by valgrind: repeatable, unlike seconds.

Each protocol runs twice, once short and once long. Dividing the difference in instructions by the difference in events
leaves out start-up. Seeds, hashes and addresses are fixed, so two measurements agree to one part in ten thousand.
`--against PYTHON` also measures the fairgate that another interpreter imports, such as an older checkout's. Only
fairgate's command line is used, so the two may differ in everything else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

LONGEST = 600  # timeout in seconds of one run under valgrind; it takes about 20
MOST = 1.03  # allowed ratio to the instructions of the other interpreter
LAN = "--nodes 100 --rate 0.5 --cs 10 --latency 1 --warmup 5"
MANY, ONE = f"{LAN} --k 3", f"{LAN} --k 1"
ROUNDS = "--nodes 1000 --k 1 --resources 10 --replicas 10 --workload rounds --requests 20 --per-resource --latency 0.05"
DHT = f"{ROUNDS} --overlay pastry"
CASES = {  # protocol -> (its options, the option that sets the length of a run, short, long)
    "fair_k": (MANY, "--requests", 200, 1200),
    "fair_k_bounded": (MANY, "--requests", 200, 1200),
    "one_line": (MANY, "--requests", 200, 1200),
    "bv95": (MANY, "--requests", 200, 1200),
    "centralised": (MANY, "--requests", 200, 1200),
    "naimi_trehel": (ONE, "--requests", 200, 1200),
    "raymond_tree": (ONE, "--requests", 200, 1200),
    "leased": (ONE, "--requests", 50, 250),
    "raymond": (MANY, "--requests", 10, 40),
    "raymond_fd": (ONE, "--requests", 10, 40),
    "ricart_agrawala": (ONE, "--requests", 10, 40),
    "suzuki_kasami": (ONE, "--requests", 10, 60),
    "srimani_reddy": (MANY, "--requests", 10, 60),
    "maekawa": (ONE, "--requests", 10, 60),
    "sigma": (f"{DHT} --option retry=0 --option lease=0", "--rounds", 10, 40),
    "e2e": (DHT, "--rounds", 10, 40),
    "non_e2e": (DHT, "--rounds", 10, 40),
    "e2e_ft": (DHT, "--rounds", 10, 40),
    "non_e2e_faults": (DHT, "--rounds", 10, 40),
}


class CannotMeasure(Exception):
    """The measurement is impossible; the message says in one line what is missing."""


@dataclass(frozen=True)
class Count:
    instructions: int
    events: int


def environment() -> dict[str, str]:
    """This process's environment, without variables that select modules, and with a fixed hash seed."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FAIRGATE"))} | {
        "PYTHONHASHSEED": "0"
    }


def fairgate(python: str, *arguments: str, under: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run `fairgate ARGUMENTS` with that interpreter. `-P` keeps it from importing files of the current directory."""
    command = [*under, python, "-P", "-m", "fairgate", *arguments]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=LONGEST, check=False)


def callgrind() -> tuple[str, ...]:
    """The prefix of a command that counts its instructions; it also fixes addresses, where that is possible."""
    if shutil.which("valgrind") is None:
        raise CannotMeasure("valgrind is not installed: install your system's valgrind package")
    fixed: tuple[str, ...] = ("setarch", "-R")
    if shutil.which("setarch") is None or subprocess.run([*fixed, "true"], capture_output=True, check=False).returncode:
        fixed = ()  # not installed, or not allowed in this container
    return (*fixed, "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")


def check_compiled(python: str) -> None:
    if shutil.which(python) is None:
        raise CannotMeasure(f"{python} is not a Python interpreter: give the path of one, such as .venv/bin/python")
    said = fairgate(python, "--version")
    if said.returncode != 0:
        raise CannotMeasure(f"{python} cannot run fairgate: run `make build` in its checkout")
    if "(compiled)" not in said.stdout:
        raise CannotMeasure(f"the fairgate of {python} is not compiled: run `make build` in its checkout")


def count(under: tuple[str, ...], python: str, protocol: str, length: int) -> Count:
    options, which, _, _ = CASES[protocol]
    arguments = [*options.split(), which, str(length), "--seed", "1", "--workers", "1", "--json"]
    done = fairgate(python, "sim", protocol, *arguments, under=under)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or collected is None:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise CannotMeasure(f"{protocol} failed under valgrind with {python}: {last}")
    return Count(int(collected[1]), json.loads(done.stdout)["events"])


def per_event(short: Count, long: Count) -> float:
    return (long.instructions - short.instructions) / (long.events - short.events)


Runs = dict[tuple[str, str, int], Count]  # by interpreter, protocol and length


def measure(pythons: list[str], protocols: list[str]) -> Runs:
    """Count all runs, one per processor at a time: the counts do not depend on the load."""
    under = callgrind()
    for python in pythons:
        check_compiled(python)
    wanted = [(python, name, length) for name in protocols for length in CASES[name][2:] for python in pythons]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(wanted, pool.map(lambda each: count(under, *each), wanted), strict=True))


def report(console: Console, runs: Runs, pythons: list[str], protocols: list[str]) -> bool:
    """Print a table; return whether all protocols are within the limit and both interpreters had the same events."""
    table = Table("instructions per event", *(["here", "other", "ratio"] if len(pythons) > 1 else ["here"]), "events")
    good = True
    for name in protocols:
        short, long = CASES[name][2:]
        found = [per_event(runs[python, name, short], runs[python, name, long]) for python in pythons]
        events = [tuple(runs[python, name, length].events for length in (short, long)) for python in pythons]
        said = f"{events[0][0]:,} and {events[0][1]:,}"
        cells = [f"{each:,.1f}" for each in found]
        if len(pythons) > 1:
            ratio = found[0] / found[1]
            cells.append(f"{ratio:.3f}")
            if events[0] != events[1]:
                said += f"; other: {events[1][0]:,} and {events[1][1]:,}"
            good = good and ratio <= MOST and events[0] == events[1]
        table.add_row(name, *cells, said)
    console.print(table)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__.partition("\n")[0])
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"any of {', '.join(CASES)}; default: all")
    parser.add_argument(
        "--against",
        metavar="PYTHON",
        help="the interpreter of another checkout to compare with, such as ../old/.venv/bin/python. The exit code is 1"
        f" if a protocol takes more than {MOST:g} times as many instructions here, or has different events",
    )
    given = parser.parse_args()
    protocols = given.protocols or list(CASES)
    unknown = [name for name in protocols if name not in CASES]
    if unknown:
        parser.error(f"no measurement for {unknown[0]!r}: choose from {', '.join(CASES)}")
    pythons = [sys.executable]
    if given.against:  # absolute, but with symbolic links: Python finds its virtual environment by them
        pythons.append(str(Path(given.against).absolute()))
    console = Console()
    try:
        runs = measure(pythons, protocols)
    except CannotMeasure as missing:
        print(f"bench.instructions: {missing}", file=sys.stderr)
        return 2
    good = report(console, runs, pythons, protocols)
    if not good:
        console.print(f"More than {MOST:g} times the instructions of {pythons[1]}, or different events.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
