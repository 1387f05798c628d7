"""One measurement in a process of its own: prints JSON. bench/speed.py runs many, side by side."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from fairgate.sim.run import Config, build, simulate


def fairgate(requests: int) -> dict[str, Any]:
    """FK's LAN at saturation, with metrics and invariants; compiled, or pure by FAIRGATE_PURE=1."""
    config = Config(protocol="fair_k", nodes=100, k=3, rate=0.5, cs=10.0, latency="1", requests=requests, warmup=5)
    started = time.process_time()
    result = simulate(config)
    seconds = time.process_time() - started
    assert result.violations == 0
    return {"entries": result.entries, "events": result.events, "seconds": seconds, "wait_mean": result.wait_mean}


def simpy(requests: int, measured: bool = False) -> dict[str, Any]:
    """The same by SimPy, with the collector off as in our own loop."""
    from bench.simpy_fair_k import MeasuredFairK, SimpyFairK  # noqa: PLC0415 (SimPy is wanted here only)

    kind = MeasuredFairK if measured else SimpyFairK
    run = kind(n=100, k=3, rate=0.5, requests=requests, cs=10.0, latency=1.0, seed=1)
    gc.disable()
    started = time.process_time()
    run.run()
    seconds = time.process_time() - started
    events = run.messages + 2 * run.entries
    return {
        "entries": run.entries,
        "events": events,
        "seconds": seconds,
        "wait_mean": run.wait_total / run.entries,
    }


def simpy_measured(requests: int) -> dict[str, Any]:
    return simpy(requests, measured=True)


def large(nodes: int) -> dict[str, Any]:
    """Many nodes, k a hundredth of them, 20 requests each, latency 1 ms (see docs/benchmarks.md for why)."""
    config = Config(
        protocol="fair_k", nodes=nodes, k=nodes // 100, rate=0.5, cs=10.0, latency="0.001", requests=20, warmup=5
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    build(config)  # the memory of the nodes and the engine, before any event
    built = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    result = simulate(config)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "entries": result.entries,
        "events": result.events,
        "seconds": seconds,
        "wait_mean": result.wait_mean,
        "messages_per_entry": result.messages_per_entry,
        "violations": result.violations,
        "bytes_per_node_built": (built - before) * 1024 / nodes,
        "bytes_per_node_peak": (peak - before) * 1024 / nodes,
    }


MEASURES: dict[str, Callable[[int], dict[str, Any]]] = {
    "fairgate": fairgate,
    "simpy": simpy,
    "simpy_measured": simpy_measured,
    "large": large,
}

if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]](int(sys.argv[2]))))
