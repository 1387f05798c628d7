"""Small runs with backups in which many peers crash: the same storms judge the layer and its mutants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairgate.core.keyspace import place_of
from fairgate.sim.build import build
from fairgate.sim.config import Config, backup_stack
from fairgate.sim.run import run


@dataclass(frozen=True)
class Storm:
    """What hits twelve peers that share a gate of two. Crashes are known sooner than most messages arrive."""

    overlay: str
    faults: str
    backups: int = 2
    census: bool = True

    def config(self, seed: int, **options: Any) -> Config:
        return Config(
            "fair_k",
            nodes=12,
            k=2,
            requests=6,
            cs=1.0,
            latency="uniform:0.02,0.4",
            faults=self.faults,
            seed=seed,
            stack=backup_stack(self.overlay, self.census),
            options={"backups": self.backups, **options},
            marks=True,
        )


AT_ONCE = Storm("full", "crash:50%@15,detect:0.1")
ONE_BY_ONE = Storm("watched", "crash:*8@8+0.05,detect:0.3")
FAR_APART = Storm("watched", "crash:*6@8+9,detect:0.1", census=False)  # copies arrive in time: nothing is lost
COMING_BACK = Storm("chord", "reset:3@8+4,reset:5@9+40,reset:7@30+30,reset:0@40+2,crash:3@45,crash:0@75", backups=3)
EARLY = Storm("watched", "crash:0@0.5,detect:0.1", census=False)  # before its first step
ONE_BACKUP = Storm("watched", "crash:*8@8+4,detect:0.1", backups=1, census=False)
REORDERED = Storm("watched", "crash:*6@8+15,detect:0.1,reorder:0.2", census=False)
FIRST, SECOND, *_ = sorted(range(12), key=place_of)  # neighbours: SECOND is the only backup of FIRST
PUSHED_OUT = Storm("chord", f"reset:{SECOND}@8+30,crash:{FIRST}@60,crash:{SECOND}@60", backups=1)
AGAIN_AND_AGAIN = Storm("chord", ",".join([f"reset:{SECOND}@{at}+5" for at in range(8, 68, 10)]))
STORMS = (EARLY, AT_ONCE, ONE_BY_ONE, FAR_APART, ONE_BACKUP, REORDERED, COMING_BACK, PUSHED_OUT, AGAIN_AND_AGAIN)


def outcome(storm: Storm, seed: int, **options: Any) -> tuple[list[str], dict[str, int]]:
    """The violations of a run, and how often its marks were noted."""
    engine = build(storm.config(seed, **options))
    run(engine, None)
    return engine.violations, engine.marks
