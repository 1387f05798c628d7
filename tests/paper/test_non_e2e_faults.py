"""Non End-to-End under failures: EE section V.B sentence by sentence (EE:F1 to F3), then the leases that we added.

EE is "Efficient Mutual Exclusion in Peer-to-Peer Systems". Routes are drawn by hand as in test_non_e2e.py: nodes 1, 2
and 3 ask, and node 7 plays replica 0. The route to it passes node 4, then node 5.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairgate.core.kbr import replica_keys
from fairgate.core.layers import over
from fairgate.core.setup import Setup
from fairgate.overlay.gates import Gates
from fairgate.protocols.non_e2e.fault_tolerant import NonE2EFaults
from fairgate.protocols.non_e2e.messages import CleanUp, Request, Taken
from fairgate.scenario.manual import ManualNetwork
from fairgate.walks.dht import SECOND, Conditions, how_runs_end, one_run, over_overlay
from tests.paper.test_non_e2e import entry_at, entry_shown, replica_key, sent, take
from tests.support.routes import Drawn

KEYS = replica_keys(Setup((0,), options={"gate": 0, "replicas": 1}))
LEASE = 3 * SECOND
HOLD = LEASE + (LEASE // 1_000_000 + 1) * 10_000


def drawn(ways: dict[int, int], protocol: type[NonE2EFaults] = NonE2EFaults, **options: Any) -> ManualNetwork:
    """A gate with one replica, so that there is only one path to check."""
    options = {"replicas": 1, "keys": KEYS, "routes": [ways], "retry": SECOND, "wait": False, **options}
    setup = Setup(tuple(range(1, 10)), options=options)
    return ManualNetwork(over(Drawn, over(Gates, protocol)), setup, slots=False, chooser=lambda n: 0, census=False)


def at(network: ManualNetwork, me: int) -> NonE2EFaults:
    layer: Any = network.nodes[me]
    node: NonE2EFaults = layer.upper.at(0)
    return node


def crash(network: ManualNetwork, me: int, *told: int) -> None:
    network.crash(me)
    for peer in told:
        network.step(peer, "on_crash", me)


def path() -> tuple[ManualNetwork, dict[int, int]]:
    """Node 1 is inside, with a path through 4, 5 and 6. Node 6 keeps node 2's request."""
    routes = {1: 4, 4: 5, 5: 6, 6: 7, 2: 6, 3: 4}
    network = drawn(routes)
    network.acquire(1)
    network.deliver_all()
    network.acquire(2)
    network.deliver_all()
    assert (list(network.inside), entry_at(network, 6, 0).queue) == ([1], [(1, 2, 0)])
    return network, routes


# "In case a node in the path fails,"


def test_f1_the_predecessor_of_a_failed_node_routes_the_request_along_a_new_path() -> None:
    network, routes = path()
    routes.update({4: 8, 8: 7})
    crash(network, 5, 4)
    assert [(src, dst, m.node) for src, dst, m in sent(network, Request)] == [(4, 8, 1)]
    network.deliver_all()
    assert entry_shown(network, 4, 0) == ((1, 1, 0), (), 1, 8)
    assert entry_shown(network, 8, 0) == ((1, 1, 0), (), 4, 7)
    assert at(network, 7).replicas[0].owner == (1, 1, 0)  # still the same owner


def test_f2_the_successor_of_a_failed_node_sends_a_clean_up_to_the_replica() -> None:
    network, routes = path()
    routes.update({4: 8, 8: 7})
    crash(network, 5, 6)
    assert [(src, dst, m.queue) for src, dst, m in sent(network, CleanUp)] == [(6, 7, ((1, 2, 0),))]
    network.deliver_all()
    assert entry_at(network, 6, 0) is None
    assert replica_key(network, 7, 0) == ((1, 1, 0), ((1, 2, 0),), False)  # the holder keeps the vote


def test_release_follows_the_new_path() -> None:
    network, routes = path()
    routes.update({4: 8, 8: 7})
    crash(network, 5, 4, 6)
    network.deliver_all()
    network.release(1)
    network.deliver_all()
    assert list(network.inside) == [2]


def test_the_entries_of_a_crashed_requester_pass_on_the_requests_they_keep() -> None:
    network = drawn({1: 4, 3: 4, 4: 7})
    network.acquire(1)
    network.deliver_all()
    network.acquire(3)
    network.deliver_all()
    crash(network, 1, 4, 7)
    network.deliver_all()
    assert list(network.inside) == [3]


# "the replica fails after receiving the partially assembled queue from its predecessor"


def test_f3_a_live_predecessor_rebuilds_the_queue_at_the_new_owner() -> None:
    routes = {1: 4, 3: 4, 4: 7}
    network = drawn(routes, lease=LEASE)
    network.acquire(1)
    network.deliver_all()
    network.acquire(3)
    network.deliver_all()
    network.release(1)
    take(network, 1, 4)
    network.flight.pop()  # node 7 receives the queue and crashes
    network.crash(7)
    assert list(at(network, 4).kept) == [(0, 1, 1, 1 << 20)]
    routes[4] = 8
    network.fire(4, "upper/0/keep")
    network.deliver_all()
    assert list(network.inside) == [3]
    assert at(network, 8).replicas[0].owner[1] == 3
    assert at(network, 4).kept == {}  # TAKEN has acknowledged it


def test_f3_a_queue_that_has_arrived_is_no_longer_kept() -> None:
    network = drawn({1: 4, 3: 4, 4: 7}, lease=LEASE)
    network.acquire(1)
    network.deliver_all()
    network.acquire(3)
    network.deliver_all()
    network.release(1)
    take(network, 1, 4)
    take(network, 4, 7)
    assert [(src, dst) for src, dst, _ in sent(network, Taken)] == [(7, 4)]
    network.deliver_all()
    assert at(network, 4).kept == {}


# Leases.


def test_a_vote_counts_only_when_its_lease_is_confirmed() -> None:
    network = drawn({1: 7}, lease=LEASE)
    network.acquire(1)
    for way in ((1, 7), (7, 1)):
        take(network, *way)
    assert not network.inside
    network.deliver_all()  # Ping, Ack
    assert list(network.inside) == [1]


def test_a_crashed_holder_is_succeeded_when_its_lease_expires() -> None:
    network = drawn({1: 7, 2: 7}, lease=LEASE)
    network.acquire(1)
    network.deliver_all()
    network.acquire(2)
    network.deliver_all()
    network.crash(1)
    while not network.inside:
        network.fire(*min((due, who) for who, due in network.timers.items())[1])
        network.deliver_all()
    assert list(network.inside) == [2]
    assert network.now >= HOLD


def test_a_holder_that_hears_nothing_loses_its_permit_before_the_replica_votes_again() -> None:
    network = drawn({1: 7, 2: 7}, lease=LEASE)
    network.acquire(1)
    network.deliver_all()
    while not network.lost:
        network.fire(*min((due, who) for who, due in network.timers.items())[1])
        network.flight.clear()  # every message is lost
    assert [(me, why) for me, _, why in network.lost] == [(1, "lease over")]
    assert at(network, 7).replicas[0].owner  # the replica still counts the vote as given


def test_a_replica_without_memory_votes_for_nobody_until_a_lease_has_passed() -> None:
    network = drawn({1: 7}, lease=LEASE, wait=True)
    network.acquire(1)
    network.deliver_all()
    assert not network.inside
    assert not at(network, 7).replicas[0].owner
    network.fire(7, "upper/0/wait:0")
    network.deliver_all()
    assert list(network.inside) == [1]
    assert network.now == HOLD


def three(**options: Any) -> ManualNetwork:
    """Replicas 0, 1 and 2 at nodes 7, 8 and 9, reached directly. Node 9 is dead; 1 has the vote of 7, 2 that of 8."""
    keys = replica_keys(Setup((0,), options={"gate": 0, "replicas": 3}))
    routes = [dict.fromkeys(range(1, 7), owner) for owner in (7, 8, 9)]
    network = drawn({}, **{"replicas": 3, "keys": keys, "routes": routes, "lease": LEASE, **options})
    network.crash(9)
    for me, owner in ((1, 7), (2, 8)):
        network.acquire(me)
        take(network, me, owner)
    return network


def pass_time(network: ManualNetwork, time: int) -> None:
    """Let time pass in steps of 0.1 s, and deliver every message at once."""
    for _ in range(10 * time // SECOND):
        network.deliver_all()
        network.advance(SECOND // 10)


def test_votes_are_yielded_even_if_a_replica_is_silent() -> None:
    """Otherwise each node would keep its vote forever: it would wait for an answer of the dead replica."""
    network = three()
    pass_time(network, 5 * LEASE)
    assert list(network.inside) == [1]
    network.release(1)
    pass_time(network, 5 * LEASE)
    assert list(network.inside) == [2]


def test_a_waiting_node_asks_again_within_a_lease_whatever_retry_is() -> None:
    """A node that waits longer than a lease for the other votes would lose those it has, so it must ask in time."""
    network = drawn({1: 7}, lease=LEASE, retry=100 * LEASE)
    network.acquire(1)
    for _ in range(20):
        network.flight.clear()  # every message is lost
        network.advance(LEASE)
        assert sent(network, Request)
    pass_time(network, LEASE)
    assert list(network.inside) == [1]


def change_range(network: ManualNetwork, me: int, start: int, end: int) -> None:
    layer: Any = network.nodes[me]
    layer.upper.on_range(start, end)
    layer.finish_step()
    network.step(me, "on_start")  # a step, so that the effects of on_range are carried out too
    network.deliver_all()


def key_moves_onto_the_path(protocol: type[NonE2EFaults]) -> ManualNetwork:
    """The path of node 1's request leads through 4 and 5 to 7. Then 7 fails, and node 1 itself owns the key.

    Node 1 releases, and nodes 3 and 2 ask, through nodes 4 and 5.
    """
    routes = {1: 4, 4: 5, 5: 7, 3: 4, 2: 5}
    network = drawn(routes, protocol)
    network.acquire(1)
    network.deliver_all()
    network.crash(7)
    del routes[1]
    routes.update({4: 1, 5: 1})
    change_range(network, 1, KEYS[0] - 1, KEYS[0])
    network.release(1)
    network.deliver_all()
    for me in (3, 2):
        network.acquire(me)
        network.deliver_all()
    return network


def test_a_path_that_ends_early_is_deleted_to_its_old_end() -> None:
    """RELEASE ends at the node that owns the key now, so it would never delete the entries behind that node."""
    network = key_moves_onto_the_path(NonE2EFaults)
    assert list(network.inside) == [3]
    network.release(3)
    network.deliver_all()
    assert list(network.inside) == [2]


def test_a_replica_moves_with_its_vote_and_its_queue() -> None:
    routes = {1: 7, 2: 7}
    network = drawn(routes)
    network.acquire(1)
    network.deliver_all()
    network.acquire(2)
    network.deliver_all()
    routes.update({7: 8})
    change_range(network, 7, KEYS[0], KEYS[0] + 1)  # a range that excludes the key
    assert replica_key(network, 8, 0) == ((1, 1, 0), ((1, 2, 0),), False)
    network.release(1)
    network.deliver_all()
    assert list(network.inside) == [2]


# Random runs.

LEASES = {"lease": LEASE}
STORM = 6 * SECOND
BAD = {
    "no faults, no leases": (Conditions(cancel=0.2), {}),
    "no faults": (Conditions(cancel=0.2), LEASES),
    "loss and duplication": (Conditions(loss=0.1, dup=0.1, cancel=0.1), LEASES),
    "heavy loss, long stays": (Conditions(loss=0.7, until=30 * SECOND, stay=20 * SECOND), LEASES),
    "resets": (Conditions(resets=2, until=STORM), LEASES),
    "crashes": (Conditions(crashes=1, until=STORM), LEASES),
    "churn": (Conditions(joins=2, leaves=2, until=STORM), LEASES),
    "everything": (Conditions(joins=1, leaves=1, crashes=1, resets=1, loss=0.1, dup=0.1, until=STORM), LEASES),
}
MARKS = {
    "a vote ran out",
    "an entry ran out",
    "a vote was gone",
    "what a RELEASE had gathered was sent again",
    "a replica moved",
}


@pytest.mark.parametrize("name", BAD)
def test_with_leases_nothing_breaks(name: str) -> None:
    conditions, options = BAD[name]
    marks: set[str] = set()
    for seed in range(150):
        marks |= one_run(over_overlay("strides", NonE2EFaults), seed, conditions, options).marks
    if name == "everything":
        assert marks >= MARKS


@pytest.mark.parametrize("overlay", ["full", "chord", "pastry"])
def test_with_leases_nothing_breaks_on_other_overlays(overlay: str) -> None:
    conditions = Conditions(crashes=1, resets=1, loss=0.1, dup=0.1, until=STORM)
    for seed in range(60):
        one_run(over_overlay(overlay, NonE2EFaults), seed, conditions, LEASES)


def test_without_leases_every_live_node_enters_if_crashes_are_reported() -> None:
    """A replica that crashes loses its memory, so a few of these runs may let two in."""
    conditions = Conditions(crashes=1, detect=2 * SECOND, until=STORM)
    ends = how_runs_end(over_overlay("strides", NonE2EFaults), range(300), conditions)
    assert ends.keys() <= {"", "k"}
    assert ends.get("k", 0) <= 5


def test_a_run_that_hung_because_the_rest_of_a_path_stayed() -> None:
    conditions = Conditions(crashes=1, detect=2 * SECOND, until=STORM, patience=600 * SECOND)
    one_run(over_overlay("strides", NonE2EFaults), 51, conditions, {"replicas": 7, "quorum": 7})


def test_replicas_that_vote_at_once_after_a_reset_can_let_two_in() -> None:
    conditions = Conditions(resets=2, until=4 * SECOND)
    ends = how_runs_end(over_overlay("strides", NonE2EFaults), range(400), conditions, {**LEASES, "wait": False})
    assert ends.keys() == {"", "k"}
