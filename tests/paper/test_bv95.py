"""BV95 (FK's reference [2]) step by step: one test per rule of the trees, the caches and the heuristics.

FK is "Fair K Mutual Exclusion Algorithm for Peer To Peer Systems". papers/bv95.md says which rules come from FK, and
which are ours.
"""

import pytest

from fairgate.core.choose import scripted
from fairgate.core.setup import Setup
from fairgate.protocols.bv95 import BV95, Request, Token
from fairgate.scenario.manual import Flight, ManualNetwork


def gate(
    n: int = 6, k: int = 2, tree: str = "static", cache: str = "append", choices: tuple[int, ...] = ()
) -> ManualNetwork:
    setup = Setup(tuple(range(n)), k, options={"tree": tree, "cache": cache})
    return ManualNetwork(BV95, setup, slots=True, chooser=scripted(choices))


def node(network: ManualNetwork, me: int) -> BV95:
    found = network.nodes[me]
    assert isinstance(found, BV95)
    return found


# The trees.


def test_every_tree_starts_with_its_token_at_the_root() -> None:
    network = gate(n=3, k=2)
    assert [node.show()["parent"] for node in network.nodes.values()] == [(-1, 1), (0, -1), (0, 1)]


def test_the_holder_of_an_idle_token_enters_without_a_message() -> None:
    network = gate()
    network.acquire(1)
    assert network.inside[1].slot == 1
    assert network.flight == []


def test_a_request_reverses_its_path_in_one_tree_only() -> None:
    network = gate()
    network.acquire(2)
    assert network.flight == [Flight(2, 0, Request(0, 2, 0))]
    network.deliver()
    assert network.flight == [Flight(0, 2, Token(0, 0, 0, ()))]
    assert network.nodes[0].show()["parent"] == (2, 1)


def test_a_node_that_waits_in_one_tree_leaves_an_idle_token_of_another_unused() -> None:
    """This makes the algorithm unfair: node 4 waits in tree 0 although token 1 is idle."""
    network = gate()
    network.acquire(0)
    network.acquire(4)
    network.deliver_all()
    assert network.waiting == {4: 2}
    assert network.nodes[1].show() == {"parent": (0, -1), "token": 1, "inside": False, "queue": (), "kept": ()}


def test_a_releasing_node_takes_the_tail_of_the_queue_as_parent() -> None:
    network = gate(k=1)
    network.acquire(0)
    for me in (3, 1, 2):
        network.acquire(me)
        network.deliver_all()
    network.release(0)
    assert network.flight == [Flight(0, 3, Token(0, 1, 0, ((0, 1), (0, 2))))]
    assert network.nodes[0].show()["parent"] == (2,)


# Leaving and asking again in one step.


@pytest.mark.parametrize("cache", ["append", "sorted"])
def test_a_node_that_asks_again_at_once_is_last_in_the_queue_of_the_token(cache: str) -> None:
    network = gate(k=1, cache=cache)
    network.acquire(0)
    for me in (3, 1):
        network.acquire(me)
        network.deliver_all()
    network.again(0)
    (token,) = network.flight  # and no request
    assert token.dst == 3
    assert isinstance(token.msg, Token)
    assert [r for _, r in token.msg.queue] == [1, 0]
    assert network.nodes[0].show()["parent"] == (-1,)  # it is a sink, because it waits
    network.acquire(2)
    for me in (3, 1, 0, 2):
        network.deliver_all()
        network.release(me)
    assert network.grants == [0, 3, 1, 0, 2]


def test_a_request_that_follows_the_token_comes_before_one_that_its_next_holder_adds() -> None:
    network = gate(k=1, cache="sorted")
    network.acquire(0)
    for me in (1, 2):
        network.acquire(me)
        network.deliver_all()
    network.release(0)
    network.acquire(0)  # its request goes to node 2, the last in the queue
    network.deliver_all()
    network.again(1)
    for me in (2, 0, 1):
        network.deliver_all()
        network.release(me)
    assert network.grants == [0, 1, 2, 0, 1]


def test_a_node_for_which_nobody_waits_enters_again_with_the_next_fence() -> None:
    network = gate(k=1)
    network.acquire(0)
    network.again(0)
    assert network.flight == []
    assert network.inside[0].fence == 2


@pytest.mark.parametrize(("k", "cache"), [(1, "none"), (1, "prepend"), (2, "append")])
def test_otherwise_the_request_follows_the_token(k: int, cache: str) -> None:
    """By these caches it would not be last, and if there are several tokens, it may ask for another one."""
    network = gate(k=k, cache=cache)
    network.acquire(0)
    network.acquire(2)
    network.deliver_all()
    network.again(0)
    assert [(flight.dst, type(flight.msg)) for flight in network.flight] == [(2, Token), (2, Request)]


# The caches.


def test_a_waiting_node_keeps_requests_and_sends_them_on_with_the_token() -> None:
    network = gate(k=1)
    network.acquire(0)
    network.acquire(1)
    network.deliver_all()
    network.release(0)
    network.acquire(2)
    network.deliver(1)
    network.deliver(1)  # node 0 forwarded the request to node 1, where it arrives before the token
    assert network.nodes[1].show()["kept"] == (2,)
    network.deliver_all()
    network.release(1)
    assert network.flight == [Flight(1, 2, Token(0, 2, 0, ()))]


def test_a_lone_node_may_re_enter_and_its_fences_keep_rising() -> None:
    network = gate(k=1)
    network.acquire(0)
    first = node(network, 0)
    assert first.alone()
    first.retaken(3)
    network.release(0)
    network.acquire(0)
    assert network.inside[0].fence == 5


def test_a_node_that_others_wait_for_is_not_alone() -> None:
    network = gate(k=1)
    network.acquire(0)
    for me in (3, 1):
        network.acquire(me)
        network.deliver_all()
    assert not node(network, 0).alone()  # it keeps their requests
    network.release(0)
    network.deliver_all()
    assert network.nodes[3].show()["kept"] == ()
    assert not node(network, 3).alone()  # the token's queue names node 1
    assert not node(network, 0).alone()  # it no longer has the token
    more = gate(k=2)
    more.acquire(0)
    assert not node(more, 0).alone()  # others may wait for the other token


@pytest.mark.parametrize(
    ("cache", "order"),
    [("append", [2, 4, 1, 3]), ("prepend", [1, 3, 2, 4]), ("sorted", [3, 2, 1, 4])],
)
def test_kept_requests_are_merged_into_the_queue_of_the_token(cache: str, order: list[int]) -> None:
    holder = node(gate(cache=cache), 0)
    holder.queue = ((5, 2), (9, 4))
    holder.kept = [(7, 1), (3, 3)]
    assert [r for _, r in holder.merged()] == order


def test_requests_with_equal_stamps_keep_their_order_of_arrival() -> None:
    holder = node(gate(cache="sorted"), 0)
    holder.queue = ((1, 4), (2, 3))
    holder.kept = [(1, 2), (2, 1)]
    assert [r for _, r in holder.merged()] == [4, 2, 3, 1]


def test_stamps_exceed_every_stamp_seen_if_sorted_and_stay_zero_otherwise() -> None:
    for cache, stamp in (("sorted", 9), ("append", 0)):
        network = gate(cache=cache)
        node(network, 2).on_message(5, Request(1, 5, 7))
        network.acquire(2)
        assert network.flight[1].msg == Request(0, 2, stamp)


def test_a_token_carries_the_clock_of_its_sender() -> None:
    network = gate(k=1, cache="sorted")
    network.acquire(2)  # the request carries clock 1
    network.deliver()  # node 0 advances to 2 on the request, and to 3 when it sends the token
    assert [flight.msg for flight in network.flight] == [Token(0, 0, 3, ())]
    network.deliver()
    assert node(network, 2).clock == 4


def test_without_a_cache_a_node_keeps_one_request_and_forwards_the_rest() -> None:
    network = gate(k=1, cache="none")
    network.acquire(0)
    for me in (3, 1, 2):
        network.acquire(me)
        network.deliver_all()
    assert [network.nodes[me].show()["kept"] for me in (0, 3, 1, 2)] == [(3,), (1,), (2,), ()]
    for me in (0, 3, 1, 2):
        network.release(me)
        network.deliver_all()
    assert network.grants == [0, 3, 1, 2]


def test_a_kept_request_survives_a_cancel_by_its_keeper() -> None:
    network = gate(k=1)
    network.acquire(0)
    network.acquire(1)
    network.deliver_all()
    network.release(0)
    network.acquire(2)
    network.deliver(1)
    network.deliver(1)
    network.cancel(1)
    network.deliver_all()
    assert network.grants == [0, 2]


# The heuristics. In a gate with three trees, node 5's own tree is tree 2.


def test_random_picks_the_tree_that_the_chooser_draws() -> None:
    assert node(gate(k=3, tree="random", choices=(1,)), 5).pick() == 1


def test_static_is_always_the_same_tree() -> None:
    network = gate(k=3, tree="static")
    assert [node(network, me).pick() for me in (3, 4, 5, 5)] == [0, 1, 2, 2]


def test_round_robin_asks_the_trees_in_turn() -> None:
    chooser = node(gate(k=3, tree="round_robin"), 5)
    assert [chooser.pick() for _ in range(4)] == [2, 0, 1, 2]


def test_last_used_is_the_tree_of_the_last_token_here() -> None:
    network = gate(k=3, tree="last_used")
    before = node(network, 1).pick()
    network.acquire(1)
    assert (before, node(network, 1).pick()) == (0, 1)


def test_most_recent_and_stalest_pick_the_tree_heard_of_last_and_longest_ago() -> None:
    for tree, picks in (("most_recent", [1, 0, 2]), ("stalest", [2, 2, 1])):
        chooser = node(gate(k=3, tree=tree), 5)
        seen = [chooser.pick()]
        for t in (0, 2):
            chooser.on_message(4, Request(t, 4, 0))
            seen.append(chooser.pick())
        assert seen == picks


def test_receiving_a_token_counts_as_hearing_of_its_tree() -> None:
    network = gate(k=3, tree="stalest")
    network.acquire(5)
    network.deliver_all()
    assert node(network, 5).slot == 2
    assert node(network, 5).pick() == 0


def test_queue_hint_picks_the_shortest_known_queue() -> None:
    network = gate(k=3, tree="queue_hint", choices=(0, 0))
    network.acquire(0)
    for me in (3, 4):
        node(network, 0).on_message(me, Request(0, me, 0))
    network.release(0)
    assert node(network, 0).hint == [2, 0, 0]
    assert node(network, 0).pick() == 1
    node(network, 0).on_message(5, Request(1, 5, 0))
    assert node(network, 0).hint == [2, 1, 0]
    assert node(network, 0).pick() == 2


# The options.


@pytest.mark.parametrize(("tree", "cache"), [("oak", "append"), ("random", "all")])
def test_an_invalid_option_is_named_in_the_error(tree: str, cache: str) -> None:
    with pytest.raises(
        ValueError, match=r"bv95: (tree must be one of random, .*'oak'|cache must be one of append, .*'all')"
    ):
        gate(tree=tree, cache=cache)
