"""FK section 3.3, the example of figure 1, step by step.

FK is "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems". Our copy lacks the picture. The states below were
derived by hand from the text of 3.3 and the pseudo-code of 3.2 before the code was run. A comment says where the text
names a pointer; the other pointers follow from the procedures. tests/scenarios/fk_figure_1.txt shows the same run in
readable form.
"""

from __future__ import annotations

from typing import cast

import pytest

from fairgate.core.ids import NIL
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.protocols.fair_k import FairK
from fairgate.protocols.fair_k_bounded import FairKBounded
from fairgate.scenario.manual import ManualNetwork


class Figure:
    """The eight nodes of the example. Pointers are returned as {node: pointer}, without those that are nil."""

    def __init__(self) -> None:
        self.network = ManualNetwork(FairK, Setup(tuple(range(1, 9)), k=3, root=3), slots=True)
        for me in (1, 2, 3):
            self.network.acquire(me)

    def node(self, me: int) -> FairK:
        return cast(FairK, self.network.nodes[me])

    def pointers(self, name: str) -> dict[int, int]:
        found = {me: getattr(self.node(me), name) for me in self.network.nodes}
        return {me: pointer for me, pointer in found.items() if pointer != NIL}

    def tokens(self) -> dict[int, int]:
        """Slot -> holder."""
        return {self.node(me).slot: me for me in self.network.nodes if self.node(me).token_present}

    def asks(self, me: int) -> list[tuple[int, int, str]]:
        """Let a node ask. Returns the messages (source, destination, text) until none is in flight."""
        self.network.acquire(me)
        return self.settle()

    def releases(self, *nodes: int) -> list[tuple[int, int, str]]:
        for me in nodes:
            self.network.release(me)
        return self.settle()

    def settle(self) -> list[tuple[int, int, str]]:
        sent = []
        while self.network.flight:
            flight = self.network.flight[0]
            sent.append((flight.src, flight.dst, repr(flight.msg)))
            self.network.deliver()
        return sent

    def coordinator_is(self, me: int, locations: tuple[int, ...], counter: int) -> None:
        """In this example the root is always the coordinator, and no other node has a counter."""
        assert [one for one in self.network.nodes if self.node(one).is_coordinator] == [me]
        assert [one for one in self.network.nodes if self.node(one).parent == NIL] == [me]
        assert self.node(me).token_locations == locations
        assert self.node(me).counter_number == counter
        assert self.pointers("counter_number") == {me: counter}


@pytest.fixture
def figure() -> Figure:
    return Figure()


def test_figure_1(figure: Figure) -> None:
    # (a) "All nodes have 3 as their parent except the node 3", which stores (1, 2, 3).
    assert figure.pointers("parent") == {1: 3, 2: 3, 4: 3, 5: 3, 6: 3, 7: 3, 8: 3}
    assert figure.pointers("child") == {}
    assert figure.tokens() == {0: 1, 1: 2, 2: 3}
    assert set(figure.network.inside) == {1, 2, 3}
    figure.coordinator_is(3, (1, 2, 3), 0)

    # (b) 4 asks 3, which sends Message_child to 1 because the counter is 0. The text names these: the parent of 3
    # is 4, child and parent of 1 are 4, and 4 is the root and the coordinator.
    assert figure.asks(4) == [
        (4, 3, "fk.request(4)"),
        (3, 1, "fk.child(4)"),
        (3, 4, "fk.token_locations((4, 2, 3), 1)"),
    ]
    assert figure.pointers("parent") == {1: 4, 2: 3, 3: 4, 5: 3, 6: 3, 7: 3, 8: 3}
    assert figure.pointers("child") == {1: 4}
    assert figure.tokens() == {0: 1, 1: 2, 2: 3}
    figure.coordinator_is(4, (4, 2, 3), 1)

    # (c) 5 asks 3, which forwards the request to its parent 4 and takes 5 as its parent. Queue 1 ends with 2.
    assert figure.asks(5) == [
        (5, 3, "fk.request(5)"),
        (3, 4, "fk.request(5)"),
        (4, 2, "fk.child(5)"),
        (4, 5, "fk.token_locations((4, 5, 3), 2)"),
    ]
    assert figure.pointers("parent") == {1: 4, 2: 5, 3: 5, 4: 5, 6: 3, 7: 3, 8: 3}
    assert figure.pointers("child") == {1: 4, 2: 5}
    assert figure.tokens() == {0: 1, 1: 2, 2: 3}
    figure.coordinator_is(5, (4, 5, 3), 2)

    # (d) 6 asks 3, which forwards the request to 5. Queue 2 ends with 3.
    assert figure.asks(6) == [
        (6, 3, "fk.request(6)"),
        (3, 5, "fk.request(6)"),
        (5, 3, "fk.child(6)"),
        (5, 6, "fk.token_locations((4, 5, 6), 0)"),
    ]
    assert figure.pointers("parent") == {1: 4, 2: 5, 3: 6, 4: 5, 5: 6, 7: 3, 8: 3}
    assert figure.pointers("child") == {1: 4, 2: 5, 3: 6}
    assert figure.tokens() == {0: 1, 1: 2, 2: 3}
    figure.coordinator_is(6, (4, 5, 6), 0)

    # (e) 7 asks 3, which forwards the request to 6. Queue 0 ends with 4, which is waiting: the queue grows behind it.
    assert figure.asks(7) == [
        (7, 3, "fk.request(7)"),
        (3, 6, "fk.request(7)"),
        (6, 4, "fk.child(7)"),
        (6, 7, "fk.token_locations((7, 5, 6), 1)"),
    ]
    assert figure.pointers("parent") == {1: 4, 2: 5, 3: 7, 4: 7, 5: 6, 6: 7, 8: 3}
    assert figure.pointers("child") == {1: 4, 2: 5, 3: 6, 4: 7}
    assert figure.tokens() == {0: 1, 1: 2, 2: 3}
    assert set(figure.network.inside) == {1, 2, 3}
    figure.coordinator_is(7, (7, 5, 6), 1)

    # (f) 1 sends its token to its child 4 and no longer has a child; 4 enters. No parent changes.
    assert figure.releases(1) == [(1, 4, "fk.token(0, 1)")]
    assert figure.pointers("parent") == {1: 4, 2: 5, 3: 7, 4: 7, 5: 6, 6: 7, 8: 3}
    assert figure.pointers("child") == {2: 5, 3: 6, 4: 7}
    assert figure.tokens() == {0: 4, 1: 2, 2: 3}
    assert set(figure.network.inside) == {2, 3, 4}
    figure.coordinator_is(7, (7, 5, 6), 1)

    # (g) 8 asks 3, which forwards the request to 7. Queue 1 ends with 5, which is waiting.
    assert figure.asks(8) == [
        (8, 3, "fk.request(8)"),
        (3, 7, "fk.request(8)"),
        (7, 5, "fk.child(8)"),
        (7, 8, "fk.token_locations((7, 8, 6), 2)"),
    ]
    assert figure.pointers("parent") == {1: 4, 2: 5, 3: 8, 4: 7, 5: 8, 6: 7, 7: 8}
    assert figure.pointers("child") == {2: 5, 3: 6, 4: 7, 5: 8}
    assert figure.tokens() == {0: 4, 1: 2, 2: 3}
    figure.coordinator_is(8, (7, 8, 6), 2)

    # (h) 2 and 3 send their tokens to their children 5 and 6, which enter. Neither 2 nor 3 has a child any longer.
    assert figure.releases(2, 3) == [(2, 5, "fk.token(1, 1)"), (3, 6, "fk.token(2, 1)")]
    assert figure.pointers("parent") == {1: 4, 2: 5, 3: 8, 4: 7, 5: 8, 6: 7, 7: 8}
    assert figure.pointers("child") == {4: 7, 5: 8}
    assert figure.tokens() == {0: 4, 1: 5, 2: 6}
    assert set(figure.network.inside) == {4, 5, 6}
    figure.coordinator_is(8, (7, 8, 6), 2)

    # (i) 2 asks its parent 5, which forwards the request to 8 and takes 2 as its parent. Queue 2 ends with 6.
    assert figure.asks(2) == [
        (2, 5, "fk.request(2)"),
        (5, 8, "fk.request(2)"),
        (8, 6, "fk.child(2)"),
        (8, 2, "fk.token_locations((7, 8, 2), 0)"),
    ]
    assert figure.pointers("parent") == {1: 4, 3: 8, 4: 7, 5: 2, 6: 2, 7: 8, 8: 2}
    assert figure.pointers("child") == {4: 7, 5: 8, 6: 2}
    assert figure.tokens() == {0: 4, 1: 5, 2: 6}
    assert set(figure.network.inside) == {4, 5, 6}
    figure.coordinator_is(2, (7, 8, 2), 0)


def test_next_stays_nil_while_requests_arrive_one_at_a_time(figure: Figure) -> None:
    """3.3: "we only show the child queue structure assuming the rate of request to be low"."""
    for me in (4, 5, 6, 7, 8):
        figure.asks(me)
        assert figure.pointers("next") == {}


def test_after_figure_1_every_node_enters_in_queue_order(figure: Figure) -> None:
    """The queues of state (i) are drained: queue 0 is 4, 7; queue 1 is 5, 8; queue 2 is 6, 2."""
    for me in (4, 5, 6, 7):
        figure.asks(me)
    figure.releases(1)
    figure.asks(8)
    figure.releases(2, 3)
    figure.asks(2)
    figure.releases(4, 5, 6)
    assert figure.tokens() == {0: 7, 1: 8, 2: 2}
    assert figure.network.grants == [1, 2, 3, 4, 5, 6, 7, 8, 2]


@pytest.mark.parametrize("protocol", [FairK, FairKBounded])
def test_a_root_without_a_token_is_refused(protocol: type[FairK]) -> None:
    """It would break property 1 of the proof: a root that does not wait has a token."""
    with pytest.raises(ValueError, match="the root 3 must have a token: it has to be one of the first 2 members"):
        protocol(1, Setup((1, 2, 3), k=2, root=3), Collected())
