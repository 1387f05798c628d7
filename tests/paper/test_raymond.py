"""RF section 4, Raymond's algorithm [Ray89]: figure 2 and the claims around it.

RF is "Fault Tolerant K-Mutual Exclusion Algorithm Using Failure Detector".
"""

from fairgate.core.setup import Setup
from fairgate.protocols.raymond import Raymond, Reply, Request
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.walk import walks


def network_of(n: int, k: int) -> ManualNetwork:
    return ManualNetwork(Raymond, Setup(tuple(range(1, n + 1)), k), slots=False)


def sends(network: ManualNetwork) -> int:
    """Deliver everything, oldest first. Returns the number of messages."""
    count = 0
    while network.flight:
        network.deliver()
        count += 1
    return count


def figure_2() -> ManualNetwork:
    """Six processes and two units, one of which node 6 has held since t1."""
    network = network_of(6, 2)
    network.acquire(6)
    network.deliver_all()
    assert list(network.inside) == [6]
    return network


def test_figure_2() -> None:
    network = figure_2()
    network.acquire(3)  # t2: a REQUEST to all but itself
    assert [flight.dst for flight in network.flight] == [1, 2, 4, 5, 6]
    for _ in range(5):
        network.deliver()
    assert [flight.src for flight in network.flight] == [1, 2, 4, 5]  # node 6 defers its reply
    for _ in range(3):
        network.deliver()
    assert 3 not in network.inside
    network.deliver()  # the fourth, N-k
    assert sorted(network.inside) == [3, 6]


def test_after_figure_2_the_deferred_reply_lowers_reply_count_and_nothing_else() -> None:
    network = figure_2()
    network.acquire(3)
    network.deliver_all()
    assert network.nodes[3].show()["reply_count"] == {6: 1}
    network.release(6)
    network.deliver_all()
    assert network.nodes[3].show()["reply_count"] == {}
    assert network.nodes[3].show()["perm_count"] == 4


def test_in_figure_2_a_crash_leaves_one_unit_less() -> None:
    network = figure_2()
    network.crash(1)
    network.acquire(3)
    network.deliver_all()
    assert list(network.inside) == [6]  # node 3 has three of the four permissions it needs
    network.release(6)
    network.deliver_all()
    assert list(network.inside) == [3]


def test_k_minus_1_crashes_are_tolerated_and_no_more() -> None:
    network = network_of(5, 3)
    network.crash(4)
    network.crash(5)
    network.acquire(1)
    network.deliver_all()
    assert list(network.inside) == [1]
    network.release(1)
    network.crash(3)
    network.acquire(1)
    network.deliver_all()
    assert list(network.waiting) == [1]


def test_line_25_compares_with_the_timestamp_of_the_message() -> None:
    network = network_of(2, 1)
    network.step(1, "on_message", 2, Request(7))  # node 1 is not requesting, so it replies; its clock is 7 now
    network.drop()
    network.acquire(1)
    assert network.flight.pop().msg == Request(8)
    network.step(1, "on_message", 2, Request(8))  # a tie, and 1 < 2
    assert not network.flight
    network.step(1, "on_message", 2, Request(3))  # earlier than node 1's request, whatever node 2 sent before
    assert [flight.msg for flight in network.flight] == [Reply(1)]


def test_a_reply_to_an_earlier_request_is_no_permission_for_the_current_one() -> None:
    network = network_of(3, 2)
    network.acquire(1)
    network.deliver(1)  # to 3
    network.deliver(1)  # 3's REPLY: N-k = 1 permission is enough
    assert list(network.inside) == [1]
    network.release(1)
    network.deliver(0)  # to 2: its REPLY to the first request is in flight
    network.acquire(1)
    network.deliver(0)  # ... and arrives now
    assert network.nodes[1].show()["reply_count"] == {2: 1, 3: 1}
    assert network.nodes[1].show()["perm_count"] == 0
    network.deliver_all()
    assert list(network.inside) == [1]


def test_in_an_idle_system_an_entry_costs_2n_minus_2_messages() -> None:
    network = network_of(7, 3)
    network.acquire(4)
    assert sends(network) == 2 * (7 - 1)


def test_deferred_replies_are_aggregated_so_the_lower_bound_holds_on_average() -> None:
    n, k, entries = 7, 3, 10
    network = network_of(n, k)
    stay = range(1, k)  # k-1 nodes stay inside and defer their replies
    for me in stay:
        network.acquire(me)
        network.deliver_all()
    count = 0
    for _ in range(entries):
        network.acquire(n)
        count += sends(network)
        network.release(n)
    assert count == entries * (2 * n - k - 1)
    for me in stay:
        network.release(me)
    assert [flight.msg for flight in network.flight if flight.dst == n] == [Reply(entries)] * (k - 1)


def test_if_k_is_n_all_enter_at_once() -> None:
    network = network_of(4, 4)
    for me in network.nodes:
        network.acquire(me)
    assert len(network.inside) == 4


def test_random_walks_reach_every_branch() -> None:
    assert walks(Raymond, range(100)) == {
        "a turn came for a cancelled request",
        "a request took over a cancelled turn",
    }
