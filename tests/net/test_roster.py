"""The roster of a cluster: every change of a gate's seats makes a view, and views rise."""

from __future__ import annotations

import pytest

from fairgate.core.ids import identity
from fairgate.errors import BadInput, KMismatch
from fairgate.net.roster import At, Go, Members, PeerRecord, Renew, Rise, SeatRecord, Sit, changed

NOW = At(1_800_000_000)
ME, OTHER = 7, 9
PEERS = tuple(PeerRecord(each, 1, f"unix:/{each}", 0, 0) for each in (ME, OTHER))
START = Members(version=1, peers=PEERS)


def seats(members: Members, gate: str = "gpu") -> tuple[SeatRecord, ...]:
    found = members.gate(gate)
    return () if found is None else found.seats


def view(members: Members, gate: str = "gpu") -> int:
    found = members.gate(gate)
    assert found is not None
    return found.view


def sat(members: Members, peer: int, *which: int, k: int = 2, gate: str = "gpu", at: At = NOW) -> Members:
    return changed(members, Sit(gate, k, "centralised", peer, tuple(identity(peer, one) for one in which)), at)


def test_a_gate_of_k_has_k_seats_at_least() -> None:
    one = sat(START, ME, 0, k=3)
    assert [(seat.host, seat.virtual) for seat in seats(one)] == [(ME, False), (ME, True), (ME, True)]
    two = sat(one, OTHER, 0, 1, k=3)
    assert [(seat.host, seat.virtual) for seat in seats(two)] == [(ME, False), (OTHER, False), (OTHER, False)]
    assert sat(two, OTHER, 1, k=3) == two  # it has this seat


def test_the_seats_of_a_peer_go_with_it() -> None:
    both = sat(sat(START, ME, 0), OTHER, 0)
    left = changed(both, Go((ME,)), NOW)
    assert [peer.id for peer in left.peers] == [OTHER]
    assert [(seat.host, seat.virtual) for seat in seats(left)] == [(OTHER, False), (OTHER, True)]
    assert view(left) > view(both)
    assert changed(left, Go((OTHER,)), NOW).gates == ()


def test_a_gate_ends_with_its_last_seat() -> None:
    one = sat(START, ME, 0)
    assert changed(one, Rise("gpu", (identity(OTHER, 0),)), NOW) == one
    assert changed(one, Rise("gpu", (identity(ME, 0),)), NOW).gates == ()


def test_views_rise_whatever_the_clock_does() -> None:
    early = At(0)
    members = sat(sat(START, ME, 0), ME, 0, gate="b")
    views = [view(members), view(members, "b")]
    members = sat(members, ME, 0, gate="c", at=early)
    views.append(view(members, "c"))
    members = changed(members, Renew("gpu"), early)
    views.append(view(members))
    members = changed(members, Rise("c", (identity(ME, 0),)), early)
    members = sat(members, ME, 0, k=5, gate="c", at=early)  # nobody had it open, so k may differ
    views.append(view(members, "c"))
    assert views == sorted(set(views))
    assert views[-1] == members.epoch
    with pytest.raises(BadInput, match="have run out"):
        changed(members, Renew("gpu"), At(1 << 40))


def test_what_is_refused() -> None:
    one = sat(START, ME, 0)
    with pytest.raises(KMismatch, match="gate gpu is open with k=2, not k=3"):
        sat(one, OTHER, 0, k=3)
    with pytest.raises(BadInput, match="gate gpu runs centralised, not bv95"):
        changed(one, Sit("gpu", 2, "bv95", OTHER, (identity(OTHER, 0),)), NOW)
    with pytest.raises(BadInput, match="peer 5 is no longer a member"):
        sat(one, 5, 0)
