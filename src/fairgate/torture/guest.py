"""A guest of a tortured cluster: asks, uses its permit while it has one, and reports (history.py).

python -m fairgate.torture.guest '{"name": "h1g2", "address": "10.0.0.5:7400", ...}'
"""

import os
import random
import signal
import sys
import threading
import time

import msgspec

from fairgate import sync
from fairgate.errors import FairgateError, GateClosed, PermitLost
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
    closing: float = 0.1  # the share of visits during which another thread closes the gate


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
                    while not self.stopping:
                        self.visit(peer.semaphore(self.plan.gate, self.plan.k))
            except PermitLost:
                continue
            except FairgateError as wrong:  # its peer is gone, or has just been started again
                print(f"{self.plan.name}: {wrong}", file=sys.stderr, flush=True)
                time.sleep(REFUSED_SECONDS)

    def visit(self, gate: sync.Semaphore) -> None:
        if self.random.random() < self.plan.closing:
            closer = threading.Timer(self.random.expovariate(1 / self.plan.stay), gate.close)
            closer.start()
            try:
                self.enter(gate)
            finally:
                closer.join()
        else:
            self.enter(gate)
        time.sleep(self.random.expovariate(1 / self.plan.rest))

    def enter(self, gate: sync.Semaphore) -> None:
        impatient = self.random.random() < self.plan.impatient
        self.tell(ASKS, now())
        try:
            permit = gate.acquire(self.plan.patience if impatient else None)
        except GateClosed:
            permit = None
        if permit is None:
            self.tell(GIVES_UP, now())
            return
        self.tell(ENTERS, now(), permit.slot, permit.fence)
        with permit:
            self.use(permit)

    def use(self, permit: sync.Permit) -> None:
        until = now() + int(self.random.expovariate(1 / self.plan.stay) * 1e9)
        try:
            while not self.stopping and now() < until:
                before = now()
                permit.check()
                self.tell(USES, before)
                time.sleep(0.005)
            before = now()
            permit.check()
        except PermitLost:
            self.tell(LOSES, now())
            raise
        self.tell(LEAVES, before)

    def tell(self, *what: object) -> None:
        """A guest that is killed may leave part of a line behind. So every line has an end, and begins at a new one."""
        os.write(self.results, f"\n{' '.join(map(str, (self.plan.name, *what)))}{END}\n".encode())


def now() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    Guest(msgspec.json.decode(sys.argv[1], type=GuestPlan)).run()
