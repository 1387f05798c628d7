"""A guest of a tortured cluster: asks, uses its permit while it has one, and reports (history.py).

python -m fairgate.torture.guest '{"name": "h1g2", "address": "10.0.0.5:7400", ...}'
"""

import os
import random
import signal
import sys
import time

import msgspec

from fairgate import sync
from fairgate.errors import FairgateError, PermitLost
from fairgate.torture.history import ASKS, END, ENTERS, GIVES_UP, LEAVES, LOSES, USES

REFUSED_SECONDS = 0.2  # until it tries again to reach its peer


class GuestPlan(msgspec.Struct, frozen=True):
    name: str
    address: str
    gate: str
    k: int
    results: str  # the file that it appends its reports to
    seed: int
    cluster: str = "fairgate"
    stay: float = 0.05  # seconds inside, on average
    rest: float = 0.02  # and outside
    impatient: float = 0.3  # the share of requests that give up soon
    patience: float = 0.05  # seconds after which these do


class Guest:
    def __init__(self, plan: GuestPlan) -> None:
        self.plan = plan
        self.random = random.Random(plan.seed)
        self.stopping = False
        self.results = os.open(plan.results, os.O_WRONLY | os.O_APPEND)
        signal.signal(signal.SIGTERM, self.stop)

    def stop(self, *_: object) -> None:
        self.stopping = True

    def run(self) -> None:
        while not self.stopping:
            try:
                with sync.join(self.plan.address, cluster=self.plan.cluster) as peer:
                    gate = peer.semaphore(self.plan.gate, self.plan.k)
                    while not self.stopping:
                        self.visit(gate)
            except PermitLost:
                continue
            except FairgateError as wrong:  # its peer is gone, or has just been started again
                print(f"{self.plan.name}: {wrong}", file=sys.stderr, flush=True)
                time.sleep(REFUSED_SECONDS)

    def visit(self, gate: sync.Semaphore) -> None:
        impatient = self.random.random() < self.plan.impatient
        self.tell(ASKS, now())
        permit = gate.acquire(self.plan.patience if impatient else None)
        if permit is None:
            self.tell(GIVES_UP, now())
            return
        self.tell(ENTERS, now(), permit.slot, permit.fence)
        with permit:
            self.use(permit)
        time.sleep(self.random.expovariate(1 / self.plan.rest))

    def use(self, permit: sync.Permit) -> None:
        until = now() + int(self.random.expovariate(1 / self.plan.stay) * 1e9)
        try:
            while not self.stopping and now() < until:
                before = now()
                permit.check()
                self.tell(USES, before)
                time.sleep(0.005)
        except PermitLost:
            self.tell(LOSES, now())
            raise
        self.tell(LEAVES, now())

    def tell(self, *what: object) -> None:
        """A guest that is killed may leave part of a line behind. So every line has an end, and begins at a new one."""
        os.write(self.results, f"\n{' '.join(map(str, (self.plan.name, *what)))}{END}\n".encode())


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    Guest(msgspec.json.decode(sys.argv[1], type=GuestPlan)).run()
