"""RF, Algorithm 1: figure 3, the cases of the proof, and the hole in lines 44 to 48."""

import json
from itertools import permutations

from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.protocols.raymond import Reply, Request
from fairgate.protocols.raymond_fd import Ack, Crash, Init, RaymondFD, RaymondFDLiteral
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.failure_detectors import fd_walked, fd_walks, hangs


def fresh(n: int, k: int, protocol: type[RaymondFD] = RaymondFD) -> ManualNetwork:
    """Nodes 1..n, their INITs under way."""
    return ManualNetwork(protocol, Setup(tuple(range(1, n + 1)), k), slots=False)


def initialized(n: int, k: int, protocol: type[RaymondFD] = RaymondFD) -> ManualNetwork:
    """Everybody trusts everybody, and lines 1 to 8 are over."""
    hand = fresh(n, k, protocol)
    for who, whom in permutations(hand.nodes, 2):
        hand.trust(who, whom)
    hand.deliver_all()
    return hand


def deliver(hand: ManualNetwork, src: int, dst: int, kind: type) -> None:
    """The oldest message of that kind between the two."""
    found = [i for i, f in enumerate(hand.flight) if (f.src, f.dst, type(f.msg)) == (src, dst, kind)]
    hand.deliver(found[0])


# Figure 3: N=4, k=2, node 2 in CS since t0.


def figure_3(protocol: type[RaymondFD] = RaymondFD) -> ManualNetwork:
    hand = initialized(4, 2, protocol)
    hand.acquire(2)
    hand.deliver_all()
    hand.acquire(1)  # t1
    deliver(hand, 1, 2, Request)  # in CS: deferred
    deliver(hand, 1, 3, Request)
    hand.crash(4)  # t2
    deliver(hand, 3, 1, Reply)
    assert list(hand.inside) == [2]
    assert hand.nodes[1].show()["perm_count"] == 1  # of N-k = 2
    return hand


def test_figure_3() -> None:
    hand = figure_3()
    hand.suspect(3, 4)  # t3: lines 44 to 48
    assert [(f.dst, f.msg) for f in hand.flight if f.src == 3] == [(1, Crash(4)), (2, Crash(4))]
    deliver(hand, 3, 1, Crash)  # t4: 1 >= 3-2
    assert sorted(hand.inside) == [1, 2]
    assert hand.nodes[1].show()["n"] == 3


def test_in_figure_3_plain_raymond_would_wait_for_node_2() -> None:
    hand = figure_3()
    hand.deliver_all()
    assert list(hand.waiting) == [1]
    hand.release(2)
    hand.deliver_all()
    assert list(hand.inside) == [1]


# Lines 1 to 8 and 34 to 37.


def test_at_the_start_t_suspects_everybody_and_s_nobody() -> None:
    hand = fresh(3, 1)
    assert hand.nodes[1].show()["T"] == [2, 3]
    assert hand.nodes[1].show()["S"] == []
    assert [(f.src, f.dst, f.msg) for f in hand.flight[:2]] == [(1, 2, Init()), (1, 3, Init())]


def test_initialization_costs_each_node_2_n_minus_2_messages_at_most() -> None:
    hand = fresh(4, 1)
    sent = list(hand.flight)
    for who, whom in permutations(hand.nodes, 2):
        hand.trust(who, whom)
    for _ in sent:
        hand.deliver()
    sent += hand.flight
    assert [sum(f.src == me for f in sent) for me in hand.nodes] == [2 * 3] * 4


def test_init_of_a_suspect_waits_until_t_trusts_it() -> None:
    hand = fresh(2, 1)
    deliver(hand, 2, 1, Init)
    assert Ack() not in [f.msg for f in hand.flight]
    hand.trust(1, 2)
    assert hand.flight[-1].msg == Ack()
    assert hand.nodes[1].show()["trusted"] == [2]


def test_a_request_before_line_8_is_satisfied_waits_and_then_goes_on() -> None:
    hand = fresh(2, 1)
    hand.acquire(1)
    assert Request(1) not in [f.msg for f in hand.flight]
    hand.trust(2, 1)
    hand.deliver_all()
    assert list(hand.inside) == [1]


def test_s_lets_a_node_start_without_the_ack_of_a_suspect() -> None:
    hand = fresh(3, 1)
    hand.trust(2, 1)
    hand.deliver_all()
    assert not hand.nodes[1].show()["ready"]
    hand.suspect(1, 3, "S")
    assert hand.nodes[1].show()["ready"]


def test_s_may_change_its_mind_before_line_8_is_satisfied() -> None:
    hand = fresh(3, 1)
    hand.suspect(1, 3, "S")
    hand.trust(1, 3, "S")
    hand.trust(2, 1)
    hand.deliver_all()
    assert not hand.nodes[1].show()["ready"]


def test_a_single_node_needs_nobody() -> None:
    hand = fresh(1, 1)
    hand.acquire(1)
    assert list(hand.inside) == [1]


# Lines 38 to 43, as the proof takes them apart.


def test_a_permission_counted_before_the_crash_is_taken_back() -> None:
    hand = initialized(5, 2)
    hand.acquire(1)
    deliver(hand, 1, 5, Request)
    deliver(hand, 5, 1, Reply)
    hand.crash(5)
    hand.suspect(1, 5)
    shown = hand.nodes[1].show()
    assert (shown["n"], shown["perm_count"]) == (4, 0)  # two more to go, as before


def test_a_reply_that_its_sender_s_crash_overtook_does_not_count() -> None:
    hand = initialized(5, 2)
    hand.acquire(1)
    deliver(hand, 1, 5, Request)
    hand.crash(5)
    hand.suspect(2, 5)
    deliver(hand, 2, 1, Crash)
    deliver(hand, 5, 1, Reply)
    shown = hand.nodes[1].show()
    assert (shown["n"], shown["perm_count"]) == (4, 0)
    assert "a reply came after the crash of its sender was known" in hand.marks


def test_a_crash_of_a_node_whose_reply_is_outstanding_lowers_what_is_needed() -> None:
    hand = initialized(2, 1)
    hand.acquire(1)
    hand.crash(2)
    hand.suspect(1, 2)
    assert list(hand.inside) == [1]


def test_a_crash_learned_while_not_requesting_shrinks_the_next_request() -> None:
    hand = initialized(4, 1)
    hand.crash(4)
    hand.suspect(2, 4)
    hand.deliver_all()
    hand.acquire(1)
    assert [f.dst for f in hand.flight] == [2, 3]
    hand.deliver_all()
    assert list(hand.inside) == [1]


def test_nobody_replies_to_the_dead() -> None:
    hand = initialized(3, 1)
    hand.acquire(1)
    hand.deliver_all()
    hand.acquire(2)
    deliver(hand, 2, 1, Request)  # deferred
    hand.crash(2)
    hand.suspect(1, 2)
    hand.flight.clear()
    hand.release(1)
    assert hand.flight == []
    hand.step(1, "on_message", 2, Request(9))  # one that was long under way
    assert hand.flight == []


def test_the_same_crash_is_counted_once_however_many_tell_of_it() -> None:
    hand = initialized(5, 1)
    hand.crash(5)
    for me in (1, 2, 3, 4):
        hand.suspect(me, 5)
    hand.deliver_all()
    assert [hand.nodes[me].show()["n"] for me in (1, 2, 3, 4)] == [4] * 4


def test_n_minus_1_crashes_leave_a_node_that_still_enters() -> None:
    hand = initialized(6, 2)
    for victim in range(2, 7):
        hand.crash(victim)
        hand.suspect(1, victim)
    hand.acquire(1)
    assert list(hand.inside) == [1]


def test_k_units_stay_k_units_after_crashes() -> None:
    hand = initialized(6, 2)
    for victim in (4, 5, 6):
        hand.crash(victim)
        hand.suspect(1, victim)
    for me in (1, 2, 3):
        hand.acquire(me)
    hand.deliver_all()
    assert len(hand.inside) == 2


def crash_messages(protocol: type[RaymondFD]) -> int:
    """N=15, everybody trusts everybody, and all notice a crash before they hear of it."""
    hand = initialized(15, 5, protocol)
    hand.crash(15)
    for me in range(1, 15):
        hand.suspect(me, 15)
    return len(hand.flight)


def test_a_crash_costs_a_broadcast_of_every_truster() -> None:
    assert crash_messages(RaymondFD) == 14 * 13
    assert crash_messages(RaymondFDLiteral) == 14 * 14  # to the letter, the dead node is told as well


# The hole: line 47 says k != i, and nothing else updates the detecting node.


def test_the_literal_text_lets_the_last_survivor_wait_for_ever() -> None:
    for protocol, enters in ((RaymondFDLiteral, False), (RaymondFD, True)):
        hand = initialized(2, 1, protocol)
        hand.crash(2)
        hand.suspect(1, 2)
        hand.acquire(1)
        hand.deliver_all()
        assert (1 in hand.inside) == enters


def test_the_literal_text_lets_the_only_detector_wait_for_ever() -> None:
    for protocol, enters in ((RaymondFDLiteral, False), (RaymondFD, True)):
        hand = figure_3(protocol)
        hand.acquire(3)
        hand.suspect(3, 4)
        hand.deliver_all()
        hand.release(1)
        hand.deliver_all()
        assert (3 in hand.inside) == enters  # node 2 is inside, node 1 gave its permission, k is 2


def test_the_literal_text_hangs_in_random_walks_too() -> None:
    assert hangs(RaymondFDLiteral, range(150), sparse=False) > 0
    assert hangs(RaymondFDLiteral, range(150), sparse=True) > 0


def test_random_walks_meet_every_branch() -> None:
    assert fd_walks(RaymondFD, range(150)) == {
        "a turn came for a cancelled request",
        "a request took over a cancelled turn",
        "a request waited for the initialization",
        "a permission died with its giver",
        "a reply came after the crash of its sender was known",
    }


def test_a_key_says_the_whole_state() -> None:
    for seed in range(20):
        hand = fd_walked(RaymondFD, seed, sparse=True)
        for me, node in hand.nodes.items():
            copy = RaymondFD(me, hand.setup, Outbox())
            copy.load(tuple(json.loads(json.dumps(node.key()))))
            assert copy.key() == node.key()
            assert copy.show() == node.show()
            assert copy.others == node.others
