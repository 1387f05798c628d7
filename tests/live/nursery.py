"""`python -m tests.live.nursery RESULTS`: forks a peer for every line of JSON that it reads, and prints its pid.

It has already imported everything, so that peers start within a few ms and many can start at once. Each peer appends
lines to the file RESULTS, with times in ns on the monotonic clock:

    PID TASK ask TIME
    PID TASK in TIME SLOT FENCE
    PID TASK out TIME
    PID - bye ENTRIES
    PID - error TEXT

On SIGTERM a peer leaves cleanly, once its requests have been granted.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass

import msgspec

import fairgate
from fairgate import sync
from fairgate.registry import PROTOCOLS

LOADED = list(PROTOCOLS.values())  # imported here, not in every peer


class Plan(msgspec.Struct, frozen=True):
    seed: int = 0
    k: int = 3
    protocol: str | None = None  # None for the default, or a room
    seeds: tuple[str, ...] = ()  # of the cluster; none for the room of this host
    tasks: int = 1
    threads: bool = False  # use the sync API
    stay: float = 0.002  # seconds inside, on average
    think: float = 0.002  # and outside
    entries: int = 1 << 60  # after these it leaves by itself
    at: float = 0.0  # when to join, on the monotonic clock


@dataclass
class Worker:
    plan: Plan
    results: int

    def __post_init__(self) -> None:
        self.entries = 0
        self.stopping = False

    def tell(self, task: object, *what: object) -> None:
        os.write(self.results, (" ".join(map(str, (os.getpid(), task, *what))) + "\n").encode())

    def entered(self, task: int, permit: fairgate.Permit | sync.Permit) -> None:
        self.tell(task, "in", time.monotonic_ns(), permit.slot, permit.fence)
        self.entries += 1

    def wants_more(self) -> bool:
        return not self.stopping and self.entries < self.plan.entries

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stop)
        async with fairgate.join(*self.plan.seeds) as peer:
            gate = peer.semaphore("gate", self.plan.k, self.plan.protocol)
            await asyncio.gather(*[self.visit(gate, task) for task in range(self.plan.tasks)])

    def stop(self, *_: object) -> None:
        self.stopping = True

    async def visit(self, gate: fairgate.Semaphore, task: int) -> None:
        rng = random.Random(f"{self.plan.seed} {task}")
        while self.wants_more():
            self.tell(task, "ask", time.monotonic_ns())
            async with gate as permit:
                self.entered(task, permit)
                if self.plan.stay:
                    await asyncio.sleep(rng.expovariate(1 / self.plan.stay))
                self.tell(task, "out", time.monotonic_ns())
            await asyncio.sleep(rng.expovariate(1 / self.plan.think) if self.plan.think else 0)

    def run_threads(self) -> None:
        with sync.join(*self.plan.seeds) as peer:
            gate = peer.semaphore("gate", self.plan.k, self.plan.protocol)
            threads = [threading.Thread(target=self.visit_now, args=(gate, task)) for task in range(self.plan.tasks)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def visit_now(self, gate: sync.Semaphore, task: int) -> None:
        rng = random.Random(f"{self.plan.seed} {task}")
        while self.wants_more():
            self.tell(task, "ask", time.monotonic_ns())
            with gate as permit:
                self.entered(task, permit)
                if self.plan.stay:
                    time.sleep(rng.expovariate(1 / self.plan.stay))
                self.tell(task, "out", time.monotonic_ns())
            if self.plan.think:
                time.sleep(rng.expovariate(1 / self.plan.think))


def work(plan: Plan, results: int) -> None:
    worker = Worker(plan, results)
    signal.signal(signal.SIGTERM, worker.stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    time.sleep(max(0.0, plan.at - time.monotonic()))
    try:
        if plan.threads:
            worker.run_threads()
        else:
            asyncio.run(worker.run())
        worker.tell("-", "bye", worker.entries)
    except BaseException:
        worker.tell("-", "error", repr(traceback.format_exc()))


def main(path: str) -> None:
    results = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped automatically
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # children unblock it once their handler is installed
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            work(msgspec.json.decode(line, type=Plan), results)
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
