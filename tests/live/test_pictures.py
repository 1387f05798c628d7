"""What `fairgate who --join` makes of the reports of several peers, which answer at different moments."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairgate.cli.inspect.in_cluster import gate_shown
from fairgate.core.ids import NIL
from fairgate.live.cluster_permit import in_order
from fairgate.live.directory import Roster
from fairgate.live.inspect import GatePicture, cluster_picture, picture
from fairgate.live.report import GateReport, PeerReport, Person
from fairgate.recovery.roster import GateRecord, Members, PeerRecord

K = 3


def holder(peer: int, slot: int = NIL, fence: int = NIL) -> Person:
    return Person(peer << 20, peer, 100 + peer, "host", True, 1, slot, fence, 0, "")


def waiter(peer: int) -> Person:
    return Person(peer << 20, peer, 100 + peer, "host", False, 1, NIL, NIL, 0, "")


def seen(*people: Person) -> GatePicture:
    """Each of them is in the report of a peer of its own."""
    reports = {one.peer: PeerReport(one.peer, one.pid, "host", (report(one),), 10, 10) for one in people}
    members = Members(peers=tuple([PeerRecord(peer, f"h:{peer}", "key") for peer in reports]))
    record = GateRecord("gpu", K, "any", 1, tuple([(peer, 1) for peer in reports]))
    return picture(record, members, reports)


def report(one: Person) -> GateReport:
    return GateReport("gpu", K, "any", 1, (one,), 0, 0, 0, 0, 0, 0)


def title(gate: GatePicture) -> str:
    out = io.StringIO()
    Console(file=out, width=160).print(gate_shown(gate))
    return out.getvalue().splitlines()[0]


def test_of_two_holders_of_a_slot_the_one_with_the_lower_fence_has_left() -> None:
    gate = seen(holder(1, 0, 5), holder(2, 1, 5), holder(3, 2, 7), holder(4, 0, 6), waiter(5))
    assert [(one.slot, one.fence) for one in gate.inside] == [(0, 6), (1, 5), (2, 7)]
    assert title(gate) == "gpu: 3 of 3 inside, 1 waiting (any)"
    gate = seen(holder(4, 0, 6), holder(1, 0, 5))
    assert [one.pid for one in gate.inside] == [104]


def test_holders_of_a_program_are_those_of_who() -> None:
    listed = in_order([holder(1, 0, 5), holder(2, 1, 5), holder(4, 0, 6), waiter(5)])
    assert [(one.inside, one.slot, one.fence) for one in listed] == [
        (True, 0, 6),
        (True, 1, 5),
        (False, None, None),
    ]


@pytest.mark.parametrize(("count", "marked"), [(3, False), (4, True)])
def test_without_slots_a_picture_of_different_moments_is_marked(count: int, marked: bool) -> None:
    gate = seen(*[holder(peer) for peer in range(1, 1 + count)])
    assert len(gate.inside) == count
    assert gate.mixed is marked
    expected = "gpu: ~4 of 3 inside, 0 waiting (the peers answered at different moments; any)"
    assert title(gate) == (expected if marked else "gpu: 3 of 3 inside, 0 waiting (any)")


def test_an_excluded_peer_that_is_back_is_not_shown_as_excluded() -> None:
    """It is back if a member has its address or its saved state, or is its process: an excluded peer joins again under
    another id."""
    creator = PeerRecord(1, "a:1", "key", pid=10, host="a")
    restarted, continued = (
        PeerRecord(2, "b:1", "key", pid=20, host="b"),
        PeerRecord(3, "c:1", "key", pid=30, host="c"),
    )
    lost, other_host = PeerRecord(4, "d:1", "key", pid=40, host="d"), PeerRecord(5, "e:1", "key", pid=30, host="e")
    moved, stateless = (
        PeerRecord(8, "f:1", "key", pid=50, host="f", state="s"),
        PeerRecord(9, "g:1", "key", pid=60, host="g"),
    )
    back = (
        PeerRecord(6, "b:1", "key", pid=21, host="b"),
        PeerRecord(7, "c:9", "key", pid=30, host="c"),
        PeerRecord(10, "f:9", "key", pid=51, host="f", state="s"),
        PeerRecord(11, "g:9", "key", pid=61, host="g"),
    )
    members = Members(peers=(creator, *back), excluded=(restarted, continued, lost, other_host, moved, stateless))
    shown = cluster_picture(Roster(9, (1,), (2, 4), members, 1), {})
    assert shown.excluded == (lost, other_host, stateless)
    before = Members(peers=(creator,), excluded=members.excluded)
    assert cluster_picture(Roster(9, (1,), (2, 4), before, 1), {}).excluded == members.excluded
