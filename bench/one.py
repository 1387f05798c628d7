"""One measurement, in its own process: prints JSON. bench/speed.py runs many of these, interleaved."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from fairgate.processes import processors
from fairgate.sim.build import build, no_collections
from fairgate.sim.config import Config
from fairgate.sim.run import run, simulate
from fairgate.sim.summary import summarise


def fairgate(requests: int) -> dict[str, Any]:
    """FK's LAN at saturation, with metrics and invariants; compiled, or pure Python with FAIRGATE_PURE=1."""
    config = Config(protocol="fair_k", nodes=100, k=3, rate=0.5, cs=10.0, latency="1", requests=requests, warmup=5)
    started = time.process_time()
    result = simulate(config)
    seconds = time.process_time() - started
    assert result.violations == 0
    return {"entries": result.entries, "events": result.events, "seconds": seconds, "wait_mean": result.wait_mean}


def simpy(requests: int, measured: bool = False, n: int = 100, k: int = 3, latency: float = 1.0) -> dict[str, Any]:
    """The same with SimPy, and with the garbage collector off as in our own loop."""
    from bench.simpy_fair_k import MeasuredFairK, SimpyFairK  # noqa: PLC0415 (only this measurement needs SimPy)

    kind = MeasuredFairK if measured else SimpyFairK
    port = kind(n=n, k=k, rate=0.5, requests=requests, cs=10.0, latency=latency, seed=1)
    gc.disable()
    started = time.process_time()
    port.run()
    seconds = time.process_time() - started
    events = port.messages + 2 * port.entries
    return {
        "entries": port.entries,
        "events": events,
        "seconds": seconds,
        "wait_mean": port.wait_total / port.entries,
    }


def simpy_measured(requests: int) -> dict[str, Any]:
    return simpy(requests, measured=True)


def large(nodes: int) -> dict[str, Any]:
    """Many nodes, k one hundredth of them, 20 requests each, latency 1 ms (docs/results.md says why)."""
    config = Config(
        protocol="fair_k", nodes=nodes, k=nodes // 100, rate=0.5, cs=10.0, latency="0.001", requests=20, warmup=5
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
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
        "bytes_per_node_peak": (peak - before) * 1024 / nodes,
    }


def simpy_large(nodes: int) -> dict[str, Any]:
    """The same with SimPy's bare port."""
    return simpy(20, n=nodes, k=nodes // 100, latency=0.001)


@no_collections()
def ee_rounds(nodes: int, protocol: str, options: dict[str, Any]) -> dict[str, Any]:
    """EE's experiment: one resource per 100 nodes, 10 replicas, 20 rounds of 20 requests per resource."""
    config = Config(
        protocol=protocol,
        nodes=nodes,
        k=1,
        resources=nodes // 100,
        workload="rounds",
        rounds=20,
        requests=20,
        per_resource=True,
        latency="0.05",
        stack=("settled_pastry",),
        options={"replicas": 10, **options},
    )
    engine = build(config)
    started = time.process_time()
    run(engine, None)
    seconds = time.process_time() - started
    result = summarise(engine, protocol, config.seed, seconds, False)
    assert result.violations == 0, result.broken
    found = {"hops": result.hops, "events": result.events, "seconds": seconds, "load": result.load}
    del engine
    shared = simulate(config, workers=processors())  # measured in real time, until the last process is done
    assert (shared.hops, shared.events, shared.load) == (result.hops, result.events, result.load)
    return {**found, "shared_seconds": shared.seconds}


@no_collections()
def million(nodes: int) -> dict[str, Any]:
    """A settled Pastry ring of this many nodes, and a thousand requests on it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    config = Config(
        protocol="sigma",
        nodes=nodes,
        k=1,
        workload="rounds",
        askers=20,
        requests=50,
        cs=0.0,
        latency="0.05",
        stack=("settled_pastry",),
        options={"replicas": 10},
    )
    engine = build(config)
    built = time.process_time() - started
    run(engine, None)
    result = summarise(engine, "sigma", 1, 0.0, False)
    assert result.violations == 0, result.broken
    return {
        "built": built,
        "seconds": time.process_time() - started,
        "gigabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024**2,
        "entries": result.entries,
        "hops": result.hops,
        "messages": sum(result.messages.values()),
    }


SIGMA_ALONE = {"retry": 0, "lease": 0}  # as in EE: no retries, no leases

MEASURES: dict[str, Callable[[int], dict[str, Any]]] = {
    "fairgate": fairgate,
    "simpy": simpy,
    "simpy_measured": simpy_measured,
    "large": large,
    "simpy_large": simpy_large,
    "sigma routed": lambda nodes: ee_rounds(nodes, "sigma", {**SIGMA_ALONE, "responses": "routed"}),
    "sigma direct": lambda nodes: ee_rounds(nodes, "sigma", SIGMA_ALONE),
    "e2e": lambda nodes: ee_rounds(nodes, "e2e", {}),
    "non_e2e": lambda nodes: ee_rounds(nodes, "non_e2e", {}),
    "million": million,
}

if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]](int(sys.argv[2]))))
