"""RF, Algorithm 1: figure 3, the cases of the proof, and the hole in lines 44 to 48.

RF is "Fault Tolerant K-Mutual Exclusion Algorithm Using Failure Detector". Line numbers are the paper's.
"""

import json
from itertools import permutations

import pytest

from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.protocols.raymond import Reply, Request
from fairgate.protocols.raymond_fd import Ack, Crash, Init, RaymondFD, RaymondFDLiteral
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.failure_detectors import fd_walked, fd_walks, hangs


def fresh(n: int, k: int, protocol: type[RaymondFD] = RaymondFD) -> ManualNetwork:
    """Nodes 1 to n, with their INITs in flight."""
    return ManualNetwork(protocol, Setup(tuple(range(1, n + 1)), k), slots=False)


def initialized(n: int, k: int, protocol: type[RaymondFD] = RaymondFD) -> ManualNetwork:
    """Every node trusts every other, and lines 1 to 8 are done."""
    network = fresh(n, k, protocol)
    for who, whom in permutations(network.nodes, 2):
        network.trust(who, whom)
    network.deliver_all()
    return network


def deliver(network: ManualNetwork, src: int, dst: int, kind: type) -> None:
    """Deliver the oldest message of that kind from src to dst."""
    found = [i for i, f in enumerate(network.flight) if (f.src, f.dst, type(f.msg)) == (src, dst, kind)]
    network.deliver(found[0])


# Figure 3: N=4, k=2, node 2 in CS since t0.


def figure_3(protocol: type[RaymondFD] = RaymondFD) -> ManualNetwork:
    network = initialized(4, 2, protocol)
    network.acquire(2)
    network.deliver_all()
    network.acquire(1)  # t1
    deliver(network, 1, 2, Request)  # in CS: deferred
    deliver(network, 1, 3, Request)
    network.crash(4)  # t2
    deliver(network, 3, 1, Reply)
    assert list(network.inside) == [2]
    assert network.nodes[1].show()["perm_count"] == 1  # of N-k = 2
    return network


def test_figure_3() -> None:
    network = figure_3()
    network.suspect(3, 4)  # t3: lines 44 to 48
    assert [(f.dst, f.msg) for f in network.flight if f.src == 3] == [(1, Crash(4)), (2, Crash(4))]
    deliver(network, 3, 1, Crash)  # t4: 1 >= 3-2
    assert sorted(network.inside) == [1, 2]
    assert network.nodes[1].show()["n"] == 3


def test_in_figure_3_plain_raymond_would_wait_for_node_2() -> None:
    network = figure_3()
    network.deliver_all()
    assert list(network.waiting) == [1]
    network.release(2)
    network.deliver_all()
    assert list(network.inside) == [1]


# Lines 1 to 8 and 34 to 37.


def test_at_the_start_t_suspects_everybody_and_s_nobody() -> None:
    network = fresh(3, 1)
    assert network.nodes[1].show()["T"] == [2, 3]
    assert network.nodes[1].show()["S"] == []
    assert [(f.src, f.dst, f.msg) for f in network.flight[:2]] == [(1, 2, Init()), (1, 3, Init())]


def test_during_initialization_each_node_sends_at_most_2n_minus_2_messages() -> None:
    network = fresh(4, 1)
    sent = list(network.flight)
    for who, whom in permutations(network.nodes, 2):
        network.trust(who, whom)
    for _ in sent:
        network.deliver()
    sent += network.flight
    assert [sum(f.src == me for f in sent) for me in network.nodes] == [2 * 3] * 4


def test_init_of_a_suspect_waits_until_t_trusts_it() -> None:
    network = fresh(2, 1)
    deliver(network, 2, 1, Init)
    assert Ack() not in [f.msg for f in network.flight]
    network.trust(1, 2)
    assert network.flight[-1].msg == Ack()
    assert network.nodes[1].show()["trusted"] == [2]


def test_a_request_before_line_8_is_satisfied_waits_and_then_goes_on() -> None:
    network = fresh(2, 1)
    network.acquire(1)
    assert Request(1) not in [f.msg for f in network.flight]
    network.trust(2, 1)
    network.deliver_all()
    assert list(network.inside) == [1]


def test_s_lets_a_node_start_without_the_ack_of_a_suspect() -> None:
    network = fresh(3, 1)
    network.trust(2, 1)
    network.deliver_all()
    assert not network.nodes[1].show()["ready"]
    network.suspect(1, 3, "S")
    assert network.nodes[1].show()["ready"]


def test_s_may_withdraw_a_suspicion_before_line_8_is_satisfied() -> None:
    network = fresh(3, 1)
    network.suspect(1, 3, "S")
    network.trust(1, 3, "S")
    network.trust(2, 1)
    network.deliver_all()
    assert not network.nodes[1].show()["ready"]


def test_a_single_node_enters_at_once() -> None:
    network = fresh(1, 1)
    network.acquire(1)
    assert list(network.inside) == [1]


# Lines 38 to 43, by the cases of the proof.


def test_a_permission_counted_before_the_crash_is_taken_back() -> None:
    network = initialized(5, 2)
    network.acquire(1)
    deliver(network, 1, 5, Request)
    deliver(network, 5, 1, Reply)
    network.crash(5)
    network.suspect(1, 5)
    shown = network.nodes[1].show()
    assert (shown["n"], shown["perm_count"]) == (4, 0)  # two more are needed, as before


def test_a_reply_overtaken_by_the_news_of_its_senders_crash_does_not_count() -> None:
    network = initialized(5, 2)
    network.acquire(1)
    deliver(network, 1, 5, Request)
    network.crash(5)
    network.suspect(2, 5)
    deliver(network, 2, 1, Crash)
    deliver(network, 5, 1, Reply)
    shown = network.nodes[1].show()
    assert (shown["n"], shown["perm_count"]) == (4, 0)
    assert "a reply came after the crash of its sender was known" in network.marks


def test_a_crash_of_a_node_that_still_owes_a_reply_lowers_the_permissions_needed() -> None:
    network = initialized(2, 1)
    network.acquire(1)
    network.crash(2)
    network.suspect(1, 2)
    assert list(network.inside) == [1]


def test_a_crash_learned_while_not_requesting_shrinks_the_next_request() -> None:
    network = initialized(4, 1)
    network.crash(4)
    network.suspect(2, 4)
    network.deliver_all()
    network.acquire(1)
    assert [f.dst for f in network.flight] == [2, 3]
    network.deliver_all()
    assert list(network.inside) == [1]


def test_a_crashed_process_gets_no_reply() -> None:
    network = initialized(3, 1)
    network.acquire(1)
    network.deliver_all()
    network.acquire(2)
    deliver(network, 2, 1, Request)  # deferred
    network.crash(2)
    network.suspect(1, 2)
    network.flight.clear()
    network.release(1)
    assert network.flight == []
    network.step(1, "on_message", 2, Request(9))  # a request sent before the crash arrives late
    assert network.flight == []


def test_a_crash_is_counted_once_however_often_it_is_reported() -> None:
    network = initialized(5, 1)
    network.crash(5)
    for me in (1, 2, 3, 4):
        network.suspect(me, 5)
    network.deliver_all()
    assert [network.nodes[me].show()["n"] for me in (1, 2, 3, 4)] == [4] * 4


def test_n_minus_1_crashes_leave_a_node_that_still_enters() -> None:
    network = initialized(6, 2)
    for victim in range(2, 7):
        network.crash(victim)
        network.suspect(1, victim)
    network.acquire(1)
    assert list(network.inside) == [1]


def test_k_units_stay_k_units_after_crashes() -> None:
    network = initialized(6, 2)
    for victim in (4, 5, 6):
        network.crash(victim)
        network.suspect(1, victim)
    for me in (1, 2, 3):
        network.acquire(me)
    network.deliver_all()
    assert len(network.inside) == 2


def crash_messages(protocol: type[RaymondFD]) -> int:
    """N=15, every node trusts every other, and all detect a crash before any CRASH message arrives."""
    network = initialized(15, 5, protocol)
    network.crash(15)
    for me in range(1, 15):
        network.suspect(me, 15)
    return len(network.flight)


def test_a_crash_costs_one_broadcast_by_every_truster() -> None:
    assert crash_messages(RaymondFD) == 14 * 13
    assert crash_messages(RaymondFDLiteral) == 14 * 14  # taken literally, the text also tells the dead node


# The hole: line 47 excludes the detecting node (k != i), and nothing else updates its own n.


def test_the_literal_text_makes_the_last_survivor_wait_forever() -> None:
    for protocol, enters in ((RaymondFDLiteral, False), (RaymondFD, True)):
        network = initialized(2, 1, protocol)
        network.crash(2)
        network.suspect(1, 2)
        network.acquire(1)
        network.deliver_all()
        assert (1 in network.inside) == enters


def test_the_literal_text_makes_the_only_detector_wait_forever() -> None:
    for protocol, enters in ((RaymondFDLiteral, False), (RaymondFD, True)):
        network = figure_3(protocol)
        network.acquire(3)
        network.suspect(3, 4)
        network.deliver_all()
        network.release(1)
        network.deliver_all()
        assert (3 in network.inside) == enters  # k is 2, node 2 is inside, and node 1 has given its permission


def test_the_literal_text_hangs_in_random_walks_too() -> None:
    assert hangs(RaymondFDLiteral, range(150), sparse=False) > 0
    assert hangs(RaymondFDLiteral, range(150), sparse=True) > 0


# A detector that is wrong, which the paper rules out.


def wrongly_suspected(protocol: type[RaymondFD], inside: bool) -> ManualNetwork:
    """Node 2 is inside or waits; node 3 takes it for crashed. Line 47 of the literal text tells it so."""
    network = initialized(4, 1, protocol)
    for me in (2, 1) if inside else (1, 2):
        network.acquire(me)
        network.deliver_all()
    network.suspect(3, 2)
    if protocol is RaymondFDLiteral:
        deliver(network, 3, 2, Crash)
    else:  # CRASH(2) is not sent to 2: hand it over
        network.step(2, "on_message", 3, Crash(2))
    network.deliver_all()
    return network


@pytest.mark.parametrize("protocol", [RaymondFD, RaymondFDLiteral])
def test_a_node_that_hears_of_its_own_crash_loses_its_permit(protocol: type[RaymondFD]) -> None:
    network = wrongly_suspected(protocol, inside=True)
    assert network.lost == [(2, 1, "the others take this node for crashed")]
    assert 2 not in network.inside


@pytest.mark.parametrize("protocol", [RaymondFD, RaymondFDLiteral])
def test_a_node_taken_for_crashed_never_enters(protocol: type[RaymondFD]) -> None:
    """Neither on replies that are still due, nor with a new request."""
    network = wrongly_suspected(protocol, inside=False)
    network.release(1)
    network.deliver_all()
    assert network.inside == {}
    network.cancel(2)
    network.acquire(2)
    network.deliver_all()
    assert network.inside == {}
    copy = RaymondFD(2, network.setup, Outbox())
    copy.load(network.nodes[2].key())
    assert copy.show() == network.nodes[2].show()


def test_others_that_had_not_heard_are_not_kept_waiting_by_a_node_taken_for_crashed() -> None:
    """It sends the replies that it had deferred."""
    network = initialized(3, 1)
    for me in (2, 1):
        network.acquire(me)
        network.deliver_all()
    network.step(2, "on_message", 3, Crash(2))
    network.deliver_all()
    assert list(network.inside) == [1]


def test_random_walks_reach_every_branch() -> None:
    assert fd_walks(RaymondFD, range(150)) == {
        "a turn came for a cancelled request",
        "a request took over a cancelled turn",
        "a request waited for the initialization",
        "a permission died with its giver",
        "a reply came after the crash of its sender was known",
        "a CRASH message brought news",
    }


def test_a_key_holds_the_whole_state() -> None:
    for seed in range(20):
        network = fd_walked(RaymondFD, seed, sparse=True)
        for me, node in network.nodes.items():
            assert isinstance(node, RaymondFD)
            copy = RaymondFD(me, network.setup, Outbox())
            copy.load(tuple(json.loads(json.dumps(node.key()))))
            assert copy.key() == node.key()
            assert copy.show() == node.show()
            assert copy.others == node.others
