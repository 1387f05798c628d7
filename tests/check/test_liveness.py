"""The graph of states: cycles, and requests that can never be granted."""

from array import array

from fairgate.check.liveness import Graph


def graph(edges: dict[int, list[int]], waiting: dict[int, int]) -> Graph:
    made = Graph()
    for state, targets in edges.items():
        made.extend([len(targets)], array("i", targets), array("i", [waiting.get(state, 0)]))
    return made


def test_an_acyclic_graph_has_no_states_on_cycles() -> None:
    assert graph({0: [1, 2], 1: [3], 2: [3], 3: []}, {}).on_cycles() == []
    assert graph({0: []}, {}).on_cycles() == []


def test_states_on_a_cycle_or_reachable_from_it_are_found() -> None:
    assert graph({0: [1], 1: [2], 2: [1, 3], 3: []}, {}).on_cycles() == [1, 2, 3]
    assert graph({0: [0]}, {}).on_cycles() == [0]


def test_a_node_that_waits_on_a_cycle_with_an_exit_is_not_lost() -> None:
    """Node 0 waits in states 0, 1 and 2, but not in 3."""
    assert graph({0: [1], 1: [2], 2: [1, 3], 3: []}, {0: 1, 1: 1, 2: 1}).lost(1) is None


def test_a_node_that_waits_on_a_cycle_without_an_exit_is_lost() -> None:
    assert graph({0: [1, 3], 1: [2], 2: [1], 3: []}, {0: 2, 1: 2, 2: 2}).lost(2) == (1, 1)
    assert graph({0: [1], 1: [1]}, {0: 1, 1: 1}).lost(1) == (0, 0)
