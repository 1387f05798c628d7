"""Maekawa's algorithm (1985) with Sanders' correction (1987): quorums, the six messages, and messages out of order."""

import random
from itertools import combinations

import pytest

from fairgate.core.message import Message
from fairgate.core.setup import Setup
from fairgate.protocols.maekawa import Failed, Inquire, Locked, Maekawa, Release, Relinquish, Request, quorum_of
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.walk import walk, walks


def network_of(n: int) -> ManualNetwork:
    return ManualNetwork(Maekawa, Setup(tuple(range(n))), slots=False)


def said(network: ManualNetwork) -> list[tuple[int, Message]]:
    """Take all messages in flight off the network, and return them."""
    effects = [(flight.dst, flight.msg) for flight in network.flight]
    network.flight.clear()
    return effects


def hear(network: ManualNetwork, me: int, src: int, msg: Message) -> list[tuple[int, Message]]:
    """Deliver one message to one node. Returns what the node sends."""
    network.step(me, "on_message", src, msg)
    return said(network)


# The quorums.


@pytest.mark.parametrize("n", range(1, 61))
def test_any_two_quorums_intersect_and_each_contains_its_own_node(n: int) -> None:
    members = tuple(range(100, 100 + 3 * n, 3))
    quorums = {me: set(quorum_of(place, members)) for place, me in enumerate(members)}
    assert all(me in quorum for me, quorum in quorums.items())
    assert all(one & other for one, other in combinations(quorums.values(), 2))


def test_a_quorum_is_a_row_and_a_column() -> None:
    assert quorum_of(4, tuple(range(9))) == (1, 3, 4, 5, 7)
    assert quorum_of(6, tuple(range(8))) == (0, 3, 6, 7)  # the last row is short
    assert quorum_of(4, tuple(range(5))) == (1, 3, 4)  # there may be one row fewer than columns


# One request alone: three messages per quorum member.


@pytest.mark.parametrize(("n", "others"), [(1, 0), (4, 2), (9, 4), (100, 18)])
def test_an_uncontended_entry_costs_three_messages_per_quorum_member(n: int, others: int) -> None:
    network = network_of(n)
    network.acquire(0)
    count = len(network.flight)
    for _ in range(count):
        network.deliver()
    count += len(network.flight)
    network.deliver_all()
    assert list(network.inside) == [0]
    network.release(0)
    assert count + len(network.flight) == 3 * others


def test_nobody_sends_to_itself() -> None:
    network = network_of(7)
    rng = random.Random(1)
    for me in network.nodes:
        network.acquire(me)
        assert all(flight.src != flight.dst for flight in network.flight)
    while network.flight:
        network.deliver(rng.randrange(len(network.flight)))
        assert all(flight.src != flight.dst for flight in network.flight)


# The arbiter is node 0 of four. Nodes 1 and 2 ask it, and in these tests node 3 does too, though outside its quorum.


def test_the_arbiter_locks_the_first_request_and_fails_a_later_one() -> None:
    network = network_of(4)
    assert hear(network, 0, 1, Request(5)) == [(1, Locked(5, 5))]
    assert hear(network, 0, 2, Request(5)) == [(2, Failed(5))]
    assert hear(network, 0, 1, Release(5)) == [(2, Locked(5, 5))]


def test_the_arbiter_inquires_for_an_earlier_request_once_per_lock() -> None:
    network = network_of(4)
    hear(network, 0, 1, Request(5))
    assert hear(network, 0, 2, Request(4)) == [(1, Inquire(5))]
    assert hear(network, 0, 3, Request(3)) == [(2, Failed(4))]  # no second INQUIRE; FAILED is Sanders' rule, next test
    assert hear(network, 0, 1, Relinquish(5)) == [(3, Locked(3, 5))]
    assert hear(network, 0, 3, Release(3)) == [(2, Locked(4, 5))]
    assert hear(network, 0, 2, Release(4)) == [(1, Locked(5, 5))]


def test_sanders_a_best_waiting_request_that_is_overtaken_is_told_failed() -> None:
    network = network_of(4)
    hear(network, 0, 1, Request(5))
    hear(network, 0, 2, Request(4))  # the best waiting request, so it is not told FAILED
    assert (2, Failed(4)) in hear(network, 0, 3, Request(3))


def test_a_request_may_overtake_the_release_of_the_one_before_it() -> None:
    network = network_of(4)
    hear(network, 0, 1, Request(5))
    assert hear(network, 0, 1, Request(6)) == [(1, Failed(6))]
    assert hear(network, 0, 1, Release(5)) == [(1, Locked(6, 6))]


# The requester is node 0 of four. Its quorum is 0, 1 and 2.


def asking() -> ManualNetwork:
    network = network_of(4)
    network.acquire(0)
    assert said(network) == [(1, Request(1)), (2, Request(1))]
    return network


def test_a_request_that_has_failed_gives_back_what_is_inquired_for() -> None:
    network = asking()
    hear(network, 0, 1, Locked(1, 1))
    hear(network, 0, 2, Failed(1))
    assert hear(network, 0, 1, Inquire(1)) == [(1, Relinquish(1))]


def test_a_request_that_has_not_failed_yet_keeps_the_inquiry_until_it_does() -> None:
    network = asking()
    hear(network, 0, 1, Locked(1, 1))
    assert hear(network, 0, 1, Inquire(1)) == []
    assert hear(network, 0, 2, Failed(1)) == [(1, Relinquish(1))]


def test_a_winner_answers_an_inquiry_with_its_release() -> None:
    network = asking()
    hear(network, 0, 1, Locked(1, 1))
    hear(network, 0, 2, Locked(1, 1))
    assert hear(network, 0, 1, Inquire(1)) == []
    network.release(0)
    assert said(network) == [(1, Release(1)), (2, Release(1))]
    assert hear(network, 0, 2, Inquire(1)) == []  # even after the release


def test_an_inquire_that_overtakes_its_locked_waits_for_it() -> None:
    network = asking()
    assert hear(network, 0, 2, Failed(1)) == []
    assert hear(network, 0, 1, Inquire(1)) == []
    assert hear(network, 0, 1, Locked(1, 1)) == [(1, Relinquish(1))]
    assert "inquire overtook locked" in network.marks


def test_a_failed_that_was_overtaken_by_its_locked_is_ignored() -> None:
    network = asking()
    hear(network, 0, 1, Locked(1, 1))
    hear(network, 0, 1, Failed(1))
    hear(network, 0, 1, Inquire(1))
    hear(network, 0, 2, Locked(1, 1))
    assert list(network.inside) == [0]


def test_a_duplicated_request_leaves_no_lock_behind() -> None:
    network = network_of(4)
    network.acquire(0)
    network.duplicate(0)  # REQUEST to 1
    twice = network.flight.pop()
    network.deliver_all()
    network.release(0)
    network.deliver_all()
    network.flight.append(twice)
    network.deliver_all()
    assert "locked for a request that is over" in network.marks
    network.acquire(1)
    network.deliver_all()
    assert list(network.inside) == [1]


def test_the_clock_of_a_locked_makes_the_next_request_later() -> None:
    network = asking()
    hear(network, 0, 1, Locked(1, 30))
    hear(network, 0, 2, Locked(1, 1))
    network.release(0)
    said(network)
    network.acquire(0)
    assert said(network)[0] == (1, Request(31))


def test_random_walks_reach_every_branch_but_the_duplicated_request() -> None:
    assert walks(Maekawa, range(300)) == {
        "a turn came for a cancelled request",
        "a request took over a cancelled turn",
        "failed was overtaken by locked",
        "inquire overtook locked",
        "a waiting best request was overtaken",
    }


@pytest.mark.parametrize("n", [9, 12, 16])
def test_random_walks_of_larger_grids_break_nothing(n: int) -> None:
    for seed in range(15):
        walk(network_of(n), random.Random(seed))
