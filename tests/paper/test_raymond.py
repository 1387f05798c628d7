"""RF section 4: Raymond's algorithm [Ray89]. Figure 2 and the claims around it."""

from fairgate.core.setup import Setup
from fairgate.protocols.raymond import Raymond, Reply, Request
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.walk import walks


def hand_of(n: int, k: int) -> ManualNetwork:
    return ManualNetwork(Raymond, Setup(tuple(range(1, n + 1)), k), slots=False)


def sends(hand: ManualNetwork) -> int:
    """Deliver everything, oldest first; how many messages that were."""
    count = 0
    while hand.flight:
        hand.deliver()
        count += 1
    return count


def figure_2() -> ManualNetwork:
    """Six processes, two units; node 6 has had one since t1."""
    hand = hand_of(6, 2)
    hand.acquire(6)
    hand.deliver_all()
    assert list(hand.inside) == [6]
    return hand


def test_figure_2() -> None:
    hand = figure_2()
    hand.acquire(3)  # t2: a REQUEST to all but itself
    assert [flight.dst for flight in hand.flight] == [1, 2, 4, 5, 6]
    for _ in range(5):
        hand.deliver()
    assert [flight.src for flight in hand.flight] == [1, 2, 4, 5]  # node 6 defers its reply
    for _ in range(3):
        hand.deliver()
    assert 3 not in hand.inside
    hand.deliver()  # the fourth, N-k
    assert sorted(hand.inside) == [3, 6]


def test_after_figure_2_the_deferred_reply_comes_late_and_only_settles_accounts() -> None:
    hand = figure_2()
    hand.acquire(3)
    hand.deliver_all()
    assert hand.nodes[3].show()["reply_count"] == {6: 1}
    hand.release(6)
    hand.deliver_all()
    assert hand.nodes[3].show()["reply_count"] == {}
    assert hand.nodes[3].show()["perm_count"] == 4


def test_figure_2_with_a_crash_leaves_one_unit_less() -> None:
    hand = figure_2()
    hand.crash(1)
    hand.acquire(3)
    hand.deliver_all()
    assert list(hand.inside) == [6]  # three permissions of four
    hand.release(6)
    hand.deliver_all()
    assert list(hand.inside) == [3]


def test_k_minus_1_crashes_are_tolerated_and_no_more() -> None:
    hand = hand_of(5, 3)
    hand.crash(4)
    hand.crash(5)
    hand.acquire(1)
    hand.deliver_all()
    assert list(hand.inside) == [1]
    hand.release(1)
    hand.crash(3)
    hand.acquire(1)
    hand.deliver_all()
    assert list(hand.waiting) == [1]


def test_the_message_s_own_timestamp_decides_line_25() -> None:
    hand = hand_of(2, 1)
    hand.step(1, "on_message", 2, Request(7))  # answered: node 1 wants nothing, and its clock is 7 now
    hand.drop()
    hand.acquire(1)
    assert hand.flight.pop().msg == Request(8)
    hand.step(1, "on_message", 2, Request(8))  # a tie, and 1 < 2
    assert not hand.flight
    hand.step(1, "on_message", 2, Request(3))  # earlier than ours, whatever node 2 said before
    assert [flight.msg for flight in hand.flight] == [Reply(1)]


def test_a_reply_to_an_earlier_request_is_no_permission_for_the_current_one() -> None:
    hand = hand_of(3, 2)
    hand.acquire(1)
    hand.deliver(1)  # to 3
    hand.deliver(1)  # 3's REPLY: N-k = 1 permission is enough
    assert list(hand.inside) == [1]
    hand.release(1)
    hand.deliver(0)  # to 2: its REPLY to the first request is under way
    hand.acquire(1)
    hand.deliver(0)  # ... and arrives now
    assert hand.nodes[1].show()["reply_count"] == {2: 1, 3: 1}
    assert hand.nodes[1].show()["perm_count"] == 0
    hand.deliver_all()
    assert list(hand.inside) == [1]


def test_an_idle_system_spends_2_n_minus_2_messages_an_entry() -> None:
    hand = hand_of(7, 3)
    hand.acquire(4)
    assert sends(hand) == 2 * (7 - 1)


def test_deferred_replies_are_aggregated_so_the_lower_bound_holds_on_average() -> None:
    n, k, entries = 7, 3, 10
    hand = hand_of(n, k)
    stay = range(1, k)  # k-1 nodes stay inside, and defer
    for me in stay:
        hand.acquire(me)
        hand.deliver_all()
    count = 0
    for _ in range(entries):
        hand.acquire(n)
        count += sends(hand)
        hand.release(n)
    assert count == entries * (2 * n - k - 1)
    for me in stay:
        hand.release(me)
    assert [flight.msg for flight in hand.flight if flight.dst == n] == [Reply(entries)] * (k - 1)


def test_all_may_enter_at_once_when_k_is_n() -> None:
    hand = hand_of(4, 4)
    for me in hand.nodes:
        hand.acquire(me)
    assert len(hand.inside) == 4


def test_random_walks_meet_every_branch() -> None:
    assert walks(Raymond, range(100)) == {
        "a turn came for a cancelled request",
        "a request took over a cancelled turn",
    }
