"""The judges of a mutant: exhaustive checks of small cases and random walks of larger systems, the cheapest first.

Together they must reach every handler, with every option, under every fault that the protocol claims to survive. The
original passes all of them; otherwise their verdict on a mutant would mean nothing.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from fairgate.check.case import Case
from fairgate.check.explore import Explorer
from fairgate.check.model import Model
from fairgate.core.kbr import Routed
from fairgate.core.mutex import Mutex, asks_again
from fairgate.mutation.dht_judges import (
    conditions_for,
    cost_conditions_for,
    costs_no_more,
    living_conditions_for,
    original_costs,
    ring_cases,
    run_living,
    run_under,
    small_swarm,
)
from fairgate.protocols.leased import GIVEN_AWAY
from fairgate.scenario.manual import Violation
from fairgate.walks.failure_detectors import fd_walks
from fairgate.walks.lossy import calm_walks, lossy_walks
from fairgate.walks.stacks import over_channel, plain
from fairgate.walks.starvation import longest_wait
from fairgate.walks.walk import walks

WALKS = 1_000  # in all settings together; fewer where walks are long
RUNS = 60  # on a DHT, per kind of run
MOST_STATES = 14_000  # per case
ON_A_RING = 4_000  # states per case on a DHT, where nodes have larger states
SECOND = 1_000_000_000

Options = dict[str, Any]
Judge = Callable[[], object]  # raises an exception if it finds a mistake


def judge(protocol: type[Mutex]) -> str:
    """The first property that breaks, or ""."""
    try:
        for passes in judges(protocol):
            passes()
    except Violation as broken:
        return str(broken).split(":", maxsplit=1)[0]
    except AssertionError:  # of the protocol itself, for example when a turn comes to a node without a request
        return "assertion"
    except Exception as error:  # any other error in a mutant counts as detected
        return type(error).__name__
    return ""


def prepare(protocol: type[Mutex]) -> None:
    """Measure the original once, before there is a process for every mutant."""
    if issubclass(protocol, Routed):
        for conditions, options in cost_conditions_for(protocol):
            original_costs(protocol.about.name, conditions, tuple(options.items()), range(RUNS))


def judges(protocol: type[Mutex]) -> Iterator[Judge]:
    if issubclass(protocol, Routed):
        yield from judges_on_dht(protocol)
        return
    if protocol.timed:
        yield from timed_judges(protocol)
        return
    walk, walk_count = (fd_walks, WALKS // 8) if protocol.about.detectors else (walks, WALKS)
    settings = options_of(protocol)
    for some, waits in zip(shares(walk_count, len(settings)), shares(WALKS // 4, len(settings)), strict=True):
        yield from (partial(walk, protocol, some, options) for options in settings)
        yield from (partial(longest_wait, protocol, waits, options) for options in settings)
    yield from (partial(explore_case, protocol, case) for case in cases(protocol))


def judges_on_dht(protocol: type[Routed]) -> Iterator[Judge]:
    """Random runs and small swarms in turn, the shorter ones first; then small cases, living rings, and costs.

    The network of random runs notices a message that is None. The compiled simulator of swarms would crash.
    """
    for runs in shares(RUNS, 1):
        yield from (
            partial(run_under, protocol, conditions, options, runs) for conditions, options in conditions_for(protocol)
        )
        yield partial(small_swarm, protocol, runs)
        for conditions, options in living_conditions_for(protocol):
            yield partial(run_living, protocol, conditions, options, runs[: len(runs) // 3])
    yield from (partial(explore_case, protocol, case, ON_A_RING) for case in ring_cases(protocol))
    for conditions, options in cost_conditions_for(protocol):
        yield partial(costs_no_more, protocol, conditions, options, range(RUNS))


def timed_judges(protocol: type[Mutex]) -> Iterator[Judge]:
    """No faults; duplicated messages; a faulty network over a channel; a crash; and, for safety only, no channel."""
    for seeds in shares(WALKS // 8, 1):
        yield partial(calm_walks, plain(protocol), seeds)
        yield partial(calm_walks, plain(protocol), seeds, doubled=0.2)
        yield partial(lossy_walks, over_channel(protocol), seeds)
        yield partial(lossy_walks, over_channel(protocol), seeds, crash=True)
    yield partial(keeps_permits, protocol, range(WALKS // 2))
    yield from (partial(explore_case, protocol, case) for case in cases(protocol))


def keeps_permits(protocol: type[Mutex], seeds: range) -> None:
    """Without a channel messages may be late or lost, but a holder must leave before its slot is given away."""
    if GIVEN_AWAY in lossy_walks(plain(protocol), seeds, live=False):
        raise Violation(f"lost: {GIVEN_AWAY} while its holder was inside, although clocks differ by at most `drift`")


def shares(walks: int, settings: int) -> tuple[range, range]:
    """The seeds for each setting, `walks` in all, in two parts. The first is a tenth, since most mutants need few."""
    each = walks // settings
    return range(each // 10 + 1), range(each // 10 + 1, each)


def options_of(protocol: type[Mutex]) -> list[Options]:
    """The defaults, and one setting for every other choice of an option; a number is set to 0 and to 1."""
    found: list[Options] = [{}]
    for name, default in protocol.about.options.items():
        if isinstance(default, tuple):
            found += [{name: choice} for choice in default[1:]]
        elif isinstance(default, bool):
            found.append({name: not default})
        elif isinstance(default, int):
            found += [{name: 0}, {name: 1}]
    return found


def explore_case(protocol: type[Mutex], case: Case, most_states: int = MOST_STATES) -> None:
    for violation in Explorer(case, Model(case, protocol)).run(most_states=most_states).violations:
        raise Violation(violation.what)


def cases(protocol: type[Mutex]) -> Iterator[Case]:
    """Small systems that together reach every handler. A gate with a single member is among them."""
    name = protocol.about.name
    if protocol.timed:
        lease = {"lease": 2 * SECOND, "drift": 500_000}
        yield Case(name, nodes=1, requests=2, ticks=1, options=lease)
        yield Case(name, nodes=2, requests=2, ticks=5, cancels=1, options=lease)
        yield Case(name, nodes=3, requests=1, ticks=4, crashes=1, options=lease)
        return
    yield Case(name, nodes=1, requests=2)
    if protocol.about.detectors:
        yield from (Case(name, nodes=3, k=k, crashes=1) for k in (1, 2))
        return
    for options in options_of(protocol):
        yield Case(name, nodes=3, options=options)
        yield Case(name, nodes=3, requests=2, cancels=1, options=options)
        if protocol.about.many:
            yield Case(name, nodes=3, k=2, requests=2, cancels=1, options=options)
        if asks_again(protocol):
            yield Case(name, nodes=3, requests=2, again=True, options=options)
    if not protocol.about.many:
        yield Case(name, nodes=4, requests=1)
