"""Tables that are damaged at random while a room is in use.

Whatever stands in the file: a request is refused, or the table is rebuilt. No process crashes or hangs.

`python -m tests.room.damage --help` runs it from the command line. A crash ends it by a signal.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable

from fairgate.errors import FairgateError
from fairgate.room import links
from fairgate.room.desk import Visit
from fairgate.room.layout import GROUP, SEAT, SLOTS, STOP
from fairgate.room.room import Room
from tests.room.versions import version

LONGEST = 1.0  # seconds for one step
USED_SEATS = 8  # that are damaged: the others are free
EXTREMES = (0, 1, -1, 2, 1 << 31, -(1 << 31), (1 << 62) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63))


class Damage:
    """One gate of two slots, with two holders and three waiters, whose table is damaged again and again."""

    def __init__(self, folder: str, seed: int) -> None:
        self.rng = random.Random(seed)
        self.room = Room(folder, "g", 2)
        self.others = Room(folder, "g", 2)
        self.held = [self.room.acquire(timeout=0, lease=lease) for lease in (None, 60)]
        self.waiting = [self.asked(permits) for permits in (1, 2, 1)]
        with open(self.room.file.path, "rb") as file:
            self.image = file.read()
        self.seats: list[int] = [*links.all_seats(self.room.file.m)][:USED_SEATS]
        self.outcomes: Counter[str] = Counter()

    def asked(self, permits: int) -> Visit:
        visit = self.others.some_visit()
        visit.want(permits, None, "")
        self.others.change(visit.ask)
        return visit

    def run(self, tables: int) -> Counter[str]:
        for _ in range(tables):
            self.restore()
            for _ in range(self.rng.choice((1, 1, 2, 3, 10, 30))):
                self.damage()
            for _ in range(self.rng.randrange(1, 4)):
                self.step()
        return self.outcomes

    def restore(self) -> None:
        fd = os.open(self.room.file.path, os.O_WRONLY)
        os.pwrite(fd, self.image, 0)
        os.ftruncate(fd, len(self.image))
        os.close(fd)
        for room in (self.room, self.others):
            room.file.map()
            room.file.check()

    # Damage.

    def damage(self) -> None:
        m = self.room.file.m
        kind = self.rng.random()
        if kind < 0.1:  # a record in the place of another one
            one, two = self.rng.choice(self.seats), self.rng.choice(self.seats)
            for at in range(SEAT):
                m[one + at] = m[two + at]
        else:
            m[self.place()] = self.value()

    def place(self) -> int:
        kind = self.rng.random()
        if kind < 0.3:
            return self.rng.choice([at for at in range(SLOTS) if at != STOP])  # STOP would stop this process
        if kind < 0.4:
            return SLOTS + self.rng.randrange(4)
        return self.rng.choice(self.seats) + self.rng.choice([at for at in range(SEAT) if at != GROUP])

    def value(self) -> int:
        kind = self.rng.random()
        if kind < 0.4:
            return self.rng.choice(self.seats) + self.rng.choice((0, 0, 0, 0, 1, -1))
        if kind < 0.6:
            return self.rng.choice(EXTREMES)
        if kind < 0.8:
            return self.rng.randrange(len(self.image) // 8 + 100)
        return self.rng.randrange(-(1 << 63), 1 << 63)

    # Steps.

    def step(self) -> None:
        began = time.monotonic()
        name, step = self.rng.choice(list(self.steps().items()))
        try:
            step()
            self.outcomes[f"{name}: done"] += 1
        except FairgateError as refused:
            self.outcomes[f"{name}: {type(refused).__name__}"] += 1
        assert time.monotonic() - began < LONGEST, f"{name} took too long"

    def steps(self) -> dict[str, Callable[[], object]]:
        rng = self.rng
        permit, visit = rng.choice(self.held), rng.choice(self.waiting)
        assert permit
        return {
            "acquire": lambda: self.acquired(rng.choice((1, 2))),
            "release": lambda: self.room.change(permit),
            "give up": lambda: self.others.change(visit.leave),
            "look": lambda: self.looked(visit),
            "list": self.room.requests,
            "revoke": lambda: self.room.revoke(rng.randrange(3)),
            "resize": lambda: self.room.resize(rng.randrange(1, 4)),
            "extend": lambda: permit.extend(10**10),
            "valid": lambda: (permit.is_valid(), permit.why_lost(), permit.deadline()),
            "open": lambda: Room(self.room.folder, "g").close(),
        }

    def acquired(self, permits: int) -> None:
        found = self.room.acquire(timeout=0, permits=permits)
        if found is not None:
            found.release()

    def looked(self, visit: Visit) -> None:
        visit.tick, visit.late = self.rng.random() < 0.5, self.rng.random() < 0.1
        visit.suspects = set(visit.duties.owners) if self.rng.random() < 0.5 else set()
        self.others.change(visit.look)


def damage(tables: int, seed: int) -> Counter[str]:
    with tempfile.TemporaryDirectory(prefix="room") as folder:
        return Damage(folder, seed).run(tables)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.room.damage", description="Damage tables at random.")
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    outcomes = damage(**vars(parser.parse_args()))
    print(f"{version()}:", dict(sorted(outcomes.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
