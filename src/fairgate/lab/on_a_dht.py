"""The runs of our own experiments for the protocols of SG and EE, which need a DHT.

They run on a settled Pastry ring, with k = 1 and three replicas, as they do unless told otherwise. A message counts
once per hop. Two of them need many messages while others wait, so their runs are smaller.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairgate.lab.experiment import Bench
from fairgate.lab.sweeps import Row
from fairgate.protocols.e2e.promises import LEASE
from fairgate.sim.config import Config

SHORT = ("e2e", "non_e2e")  # hops: O(log N)
REPEATING = ("non_e2e_faults", "e2e_ft", "sigma")  # clients that wait or are inside send messages now and then
LINEAR = ("sigma_zones", "strawman")  # hops: proportional to N
PROTOCOLS = (*SHORT, *REPEATING, *LINEAR)
SURVIVING = ("e2e_ft", "non_e2e_faults", "sigma", "sigma_zones", "strawman")
OPTIONS: dict[str, dict[str, Any]] = {"non_e2e_faults": {"lease": LEASE}}  # without leases it behaves as non_e2e
RING = ("settled_pastry",)
NOTE = "On a DHT: a settled Pastry ring, k = 1 and three replicas; non_e2e_faults has leases of 30 s, as e2e_ft has."


def measured(bench: Bench, bases: Sequence[Config], trials: int = 1, series: Sequence[str] = ()) -> list[Row]:
    configs = [replace(base, k=1, stack=RING, options=OPTIONS.get(base.protocol, {})) for base in bases]
    rows = bench.run([each for config in configs for each in bench.seeds(config, trials)], series)
    return [row | {"hops_per_entry": row["hops"] / max(1, row["entries"])} for row in rows]


def cost_rows(bench: Bench) -> list[Row]:
    """Every node asks again and again."""
    sizes = {
        SHORT: bench.pick([9, 25], [9, 25, 100, 1_000], [9, 25, 100, 1_000, 10_000]),
        REPEATING: bench.pick([9, 25], [9, 25, 100], [9, 25, 100, 400]),
        LINEAR: bench.pick([9, 25], [9, 25], [9, 25, 100]),
    }
    base = Config(rate=0.5, cs=10.0, latency="0.001", requests=bench.pick(3, 5, 5))
    bases = [
        replace(base, protocol=protocol, nodes=nodes)
        for protocols, numbers in sizes.items()
        for protocol in protocols
        for nodes in numbers
    ]
    return measured(bench, bases, bench.pick(1, 1, 3))


def wait_rows(bench: Bench, varying: bool) -> list[Row]:
    """With stays that vary, or with equal ones."""
    base = Config(
        nodes=bench.pick(10, 20, 20),
        rate=0.5,
        cs=10.0,
        latency="0.05",
        exponential_cs=varying,
        warmup=2,
        waits=True,
        requests=bench.pick(10, 20, 100),
    )
    bases = [replace(base, protocol=protocol) for protocol in PROTOCOLS]
    return measured(bench, bases, bench.pick(1, 1, 3), ["wait_shares", "node_maxima"])


def crash_rows(bench: Bench, base: Config) -> list[Row]:
    """The faults and the nodes of `base`; runs end with it, because protocols that stall would never be done."""
    bases = [replace(base, protocol=protocol) for protocol in (*SHORT, *SURVIVING)]
    rows = measured(bench, bases, bench.pick(1, 1, 3), ["usage"])
    return [row | {"line": row["protocol"]} for row in rows]
