"""BV95 by hand: one rule of the trees, the heuristics and the caches a test."""

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


def node(hand: ManualNetwork, me: int) -> BV95:
    found = hand.nodes[me]
    assert isinstance(found, BV95)
    return found


# The trees.


def test_every_tree_starts_with_its_token_at_the_root() -> None:
    hand = gate(n=3, k=2)
    assert [node.show()["parent"] for node in hand.nodes.values()] == [(-1, 1), (0, -1), (0, 1)]


def test_the_holder_of_an_idle_token_enters_without_a_message() -> None:
    hand = gate()
    hand.acquire(1)
    assert hand.inside[1].slot == 1
    assert hand.flight == []


def test_a_request_reverses_its_path_in_one_tree_only() -> None:
    hand = gate()
    hand.acquire(2)
    assert hand.flight == [Flight(2, 0, Request(0, 2, 0))]
    hand.deliver()
    assert hand.flight == [Flight(0, 2, Token(0, 0, 0, ()))]
    assert hand.nodes[0].show()["parent"] == (2, 1)


def test_who_waits_in_one_tree_lets_a_token_of_another_lie_idle() -> None:
    hand = gate()  # what makes it unfair: 4 waits in tree 0, and token 1 is idle all the time
    hand.acquire(0)
    hand.acquire(4)
    hand.deliver_all()
    assert hand.waiting == {4: 2}
    assert hand.nodes[1].show() == {"parent": (0, -1), "token": 1, "inside": False, "queue": (), "kept": ()}


def test_the_releaser_points_at_the_tail() -> None:
    hand = gate(k=1)
    hand.acquire(0)
    for me in (3, 1, 2):
        hand.acquire(me)
        hand.deliver_all()
    hand.release(0)
    assert hand.flight == [Flight(0, 3, Token(0, 1, 0, ((0, 1), (0, 2))))]
    assert hand.nodes[0].show()["parent"] == (2,)


# The caches.


def test_who_waits_keeps_requests_and_the_token_takes_them_along() -> None:
    hand = gate(k=1)
    hand.acquire(0)
    hand.acquire(1)
    hand.deliver_all()
    hand.release(0)
    hand.acquire(2)
    hand.deliver(1)
    hand.deliver(1)  # 0 has sent it after the token, which it overtakes
    assert hand.nodes[1].show()["kept"] == (2,)
    hand.deliver_all()
    hand.release(1)
    assert hand.flight == [Flight(1, 2, Token(0, 2, 0, ()))]


def test_who_is_alone_may_come_again_and_its_fences_go_on() -> None:
    hand = gate(k=1)
    hand.acquire(0)
    first = node(hand, 0)
    assert first.alone()
    first.retaken(3)
    hand.release(0)
    hand.acquire(0)
    assert hand.inside[0].fence == 5


def test_nobody_is_alone_whom_others_wait_for() -> None:
    hand = gate(k=1)
    hand.acquire(0)
    for me in (3, 1):
        hand.acquire(me)
        hand.deliver_all()
    assert not node(hand, 0).alone()  # it keeps them
    hand.release(0)
    hand.deliver_all()
    assert hand.nodes[3].show()["kept"] == ()
    assert not node(hand, 3).alone()  # they came with the token
    assert not node(hand, 0).alone()  # it has no token any more
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


def test_equal_stamps_stay_in_the_order_they_came() -> None:
    holder = node(gate(cache="sorted"), 0)
    holder.queue = ((1, 4), (2, 3))
    holder.kept = [(1, 2), (2, 1)]
    assert [r for _, r in holder.merged()] == [4, 2, 3, 1]


def test_stamps_are_past_all_that_was_seen_and_stand_still_where_nobody_sorts() -> None:
    for cache, stamp in (("sorted", 9), ("append", 0)):
        hand = gate(cache=cache)
        node(hand, 2).on_message(5, Request(1, 5, 7))
        hand.acquire(2)
        assert hand.flight[1].msg == Request(0, 2, stamp)


def test_a_token_carries_the_clock_of_its_sender() -> None:
    hand = gate(k=1, cache="sorted")
    hand.acquire(2)  # 1
    hand.deliver()  # 2, and 3 as the token goes
    assert [flight.msg for flight in hand.flight] == [Token(0, 0, 3, ())]
    hand.deliver()
    assert node(hand, 2).clock == 4


def test_without_a_cache_one_request_is_kept_and_the_rest_sent_after_it() -> None:
    hand = gate(k=1, cache="none")
    hand.acquire(0)
    for me in (3, 1, 2):
        hand.acquire(me)
        hand.deliver_all()
    assert [hand.nodes[me].show()["kept"] for me in (0, 3, 1, 2)] == [(3,), (1,), (2,), ()]
    for me in (0, 3, 1, 2):
        hand.release(me)
        hand.deliver_all()
    assert hand.grants == [0, 3, 1, 2]


def test_a_kept_request_outlives_a_cancel_of_its_keeper() -> None:
    hand = gate(k=1)
    hand.acquire(0)
    hand.acquire(1)
    hand.deliver_all()
    hand.release(0)
    hand.acquire(2)
    hand.deliver(1)
    hand.deliver(1)
    hand.cancel(1)
    hand.deliver_all()
    assert hand.grants == [0, 2]


# The heuristics. Node 5 of a gate with three trees has tree 2 for its own.


def test_random_asks_the_chooser() -> None:
    assert node(gate(k=3, tree="random", choices=(1,)), 5).pick() == 1


def test_static_is_always_the_same_tree() -> None:
    hand = gate(k=3, tree="static")
    assert [node(hand, me).pick() for me in (3, 4, 5, 5)] == [0, 1, 2, 2]


def test_round_robin_asks_the_trees_in_turn() -> None:
    chooser = node(gate(k=3, tree="round_robin"), 5)
    assert [chooser.pick() for _ in range(4)] == [2, 0, 1, 2]


def test_last_used_is_the_tree_of_the_last_token_here() -> None:
    hand = gate(k=3, tree="last_used")
    before = node(hand, 1).pick()
    hand.acquire(1)
    assert (before, node(hand, 1).pick()) == (0, 1)


def test_most_recent_and_stalest_are_the_first_and_the_last_tree_heard_of() -> None:
    for tree, picks in (("most_recent", [1, 0, 2]), ("stalest", [2, 2, 1])):
        chooser = node(gate(k=3, tree=tree), 5)
        seen = [chooser.pick()]
        for t in (0, 2):
            chooser.on_message(4, Request(t, 4, 0))
            seen.append(chooser.pick())
        assert seen == picks


def test_a_token_is_heard_of_too() -> None:
    hand = gate(k=3, tree="stalest")
    hand.acquire(5)
    hand.deliver_all()
    assert node(hand, 5).slot == 2
    assert node(hand, 5).pick() == 0


def test_queue_hint_is_the_shortest_queue_known() -> None:
    hand = gate(k=3, tree="queue_hint", choices=(0, 0))
    hand.acquire(0)
    for me in (3, 4):
        node(hand, 0).on_message(me, Request(0, me, 0))
    hand.release(0)
    assert node(hand, 0).hint == [2, 0, 0]
    assert node(hand, 0).pick() == 1
    node(hand, 0).on_message(5, Request(1, 5, 0))
    assert node(hand, 0).hint == [2, 1, 0]
    assert node(hand, 0).pick() == 2


# The options.


@pytest.mark.parametrize(("tree", "cache"), [("oak", "append"), ("random", "all")])
def test_a_wrong_option_is_named(tree: str, cache: str) -> None:
    with pytest.raises(
        ValueError, match=r"bv95: (tree must be one of random, .*'oak'|cache must be one of append, .*'all')"
    ):
        gate(tree=tree, cache=cache)
