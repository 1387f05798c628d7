"""Mutants of one_line: rules whose lack breaks a property, and rules whose lack costs order, time or messages."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import ModuleType

import pytest

from fairgate.mutation.deletions import Deleted, count_places, mutant_at, rebased, speaking
from fairgate.mutation.survivors import SURVIVORS
from fairgate.protocols.one_line.protocol import OneLine
from fairgate.registry import PROTOCOLS
from fairgate.sim.config import Config
from fairgate.sim.run import simulate
from tests.mutants.mutate import caught, mutant
from tests.support.chase import entries_while_chasing
from tests.support.line_order import WITHOUT_PROMISES, most_overtakes

CLIENT, COORDINATOR = "protocols.one_line.protocol", "protocols.one_line.coordinator"
OFTEN = {"reign": 1, "chase": 0}  # the Line moves as often as it can
LONG = {"reign": 1, "ahead": 3}

# name -> module, text, replacement, options, what may break
MUTANTS = {
    "a token for a request that has been served is kept": (
        CLIENT,
        "            self.to_door(Free(self.latest, m.slot, m.fence, self.me, m.n))  # OL:TK4",
        "            pass",
        {"patience": 0},
        {"tokens"},
    ),
    "messages that came before the Line are forgotten": (
        CLIENT,
        "            self.on_message(self.me, each)  # OL:MV6",
        "            pass",
        OFTEN,
        {"tokens", "liveness"},
    ),
    "the token that comes with the Line is forgotten": (
        CLIENT,
        "            self.take_back(line, m.slot, line.loans[m.slot].fence)  # OL:MV5",
        "            pass",
        OFTEN,
        {"tokens"},
    ),
    "the coordinator keeps the Line that it sends": (
        COORDINATOR,
        "        self.line = None\n",
        "",
        OFTEN,
        {"coordinator", "tokens"},
    ),
    "a promise that is void still counts as one": (
        COORDINATOR,
        "            if loan.next == NIL:\n                line.told.remove(loan.slot)\n\n",
        "\n",
        {},
        {"KeyError"},
    ),
    "a request that is in line is appended again": (
        COORDINATOR,
        "        if known < n:",
        "        if True:",
        OFTEN,
        {"KeyError", "IndexError", "tokens", "liveness"},
    ),
    "an old Gone changes the fence": (
        CLIENT,
        "            if m.fence > loan.fence:",
        "            if True:",
        {"patience": 0, **LONG},
        {"fence", "tokens", "liveness"},
    ),
}


def loaded(name: str, old: str, new: str) -> ModuleType:
    """The module of OneLine, with this text replaced in its own file or in that of its base class."""
    import_module(f"fairgate.{CLIENT}")
    module = mutant(name, old, new)
    return module if name == CLIENT else rebased(OneLine, f"fairgate.{name}", module)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    module_name, old, new, options, expected = MUTANTS[name]
    module = loaded(module_name, old, new)
    assert caught(module, "OneLine", seeds=1000, options=options) in expected


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 2), (5, 3)])
def test_without_the_rule_about_chased_requests_an_adversary_starves_a_node(n: int, k: int) -> None:
    module = loaded(CLIENT, "if m.hops >= self.chase and", "if False and")
    assert [entries_while_chasing(module.OneLine, seed, n, k, most=300) for seed in range(3)] == [300] * 3


# With ahead=0, as live gates run: name -> text and replacement in the coordinator
OVERTAKING = {
    "promises are made although `ahead` is 0": (
        "while line.hungry.count > 0 and self.ahead > 0:",
        "while line.hungry.count > 0:",
    ),
    "the node with the highest id goes first": (
        "        return line.waiting.take_first()",
        "        r: int = max(line.waiting.nodes(), default=NIL)\n"
        "        if r != NIL:\n"
        "            line.waiting.remove(r)\n"
        "        return r",
    ),
}


@pytest.mark.parametrize("name", OVERTAKING)
def test_a_mutant_that_overtakes_without_promises_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = loaded(COORDINATOR, *OVERTAKING[name])
    monkeypatch.setitem(PROTOCOLS, "one_line", module.OneLine)
    with speaking(module):
        assert max(most_overtakes(config) for config in WITHOUT_PROMISES) > 0


# Survivors of mutation/survivors.py: they are safe and live, and each costs something that can be measured.

RUNS = [
    Config("one_line", nodes=12, k=3, cs=1.0, rate=1.0, latency="uniform:0.1,1.9", requests=30, exponential_cs=True),
    Config("one_line", nodes=6, k=2, cs=0.1, rate=0.2, latency="uniform:0,2", requests=40, seed=2),
    Config("one_line", nodes=8, k=4, cs=2.0, rate=0.3, latency="0.5", requests=30, exponential_cs=True, seed=3),
]
SETTINGS: list[dict[str, int]] = [{}, {"reign": 1, "patience": 0}, {"reign": 1, "ahead": 3, "patience": 1, "chase": 0}]
CONFIGS = [
    replace(run, options=options, faults=faults)
    for run in RUNS
    for options in SETTINGS
    for faults in ("", "reorder:0.3")
]


COSTS = ("load", "messages", "order", "time")  # the first words of reasons


def figures(config: Config) -> tuple[object, ...]:
    result = simulate(config)
    return (result.entries, result.messages, result.wait_mean, result.wait_max, result.overtakes)


def costs_something(protocol: type) -> bool:
    PROTOCOLS["one_line"] = protocol
    try:
        return any(figures(config) != expected for config, expected in zip(CONFIGS, EXPECTED, strict=True))
    except Exception:  # in a longer run, some of them fail
        return True
    finally:
        PROTOCOLS["one_line"] = OneLine


EXPECTED: list[tuple[object, ...]] = []


@pytest.mark.stress
def test_every_survivor_costs_something() -> None:
    """If deleting a statement changes nothing at all, it is not needed."""
    EXPECTED[:] = [figures(config) for config in CONFIGS]
    free: list[Deleted] = []
    for number in range(count_places(OneLine)):
        deleted, module = mutant_at(OneLine, number)
        reason = SURVIVORS["one_line"].get((deleted.handler, deleted.statement), "")
        if reason.startswith(COSTS):
            with speaking(module):
                free += [] if costs_something(module.OneLine) else [deleted]
    assert free == []
