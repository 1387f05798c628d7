"""The roster of a cluster: every change of a gate's seats makes a view, views rise, and ghosts keep a gate alive."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from fairgate.core.ids import SEATS, identity
from fairgate.errors import BadInput, KMismatch
from fairgate.net.codec import LIMIT
from fairgate.recovery.roster import (
    EPOCH_ZERO,
    EPOCHS,
    MOST_BYTES,
    MOST_REQUESTS,
    REMEMBERED,
    GateRecord,
    Members,
    Newcomer,
    PeerRecord,
    Renew,
    Rise,
    RosterBook,
    Sit,
    as_key,
    changed,
    forgotten,
    gone,
    members_of,
)

NOW = 1_800_000_000
ME, OTHER = 7, 9
START = Members("c0ffee", 10, 1, 0, (PeerRecord(ME, "unix:/7", "unix:0:7"), PeerRecord(OTHER, "unix:/9", "unix:0:9")))


def gate(members: Members, name: str = "gpu") -> GateRecord:
    found = members.gate(name)
    assert found is not None
    return found


def sat(members: Members, peer: int, seats: int = 1, k: int = 2, name: str = "gpu", seconds: int = NOW) -> Members:
    return changed(members, Sit(name, k, "centralised", seats), peer, seconds)


def test_a_gate_of_k_has_k_seats_at_least() -> None:
    one = sat(START, ME, k=3)
    assert gate(one).idents() == (identity(ME, 0), identity(ME, SEATS - 1), identity(ME, SEATS - 2))
    two = sat(one, OTHER, 2, k=3)
    assert gate(two).idents() == (identity(ME, 0), identity(OTHER, 0), identity(OTHER, 1))
    assert sat(two, OTHER, 2, k=3) == two  # it has these seats
    more = sat(two, ME, 2, k=3)
    assert gate(more).hosts == ((ME, 2), (OTHER, 2))
    assert gate(more).view > gate(two).view


def test_the_seats_of_a_peer_that_leaves_go_with_it() -> None:
    both = sat(sat(START, ME), OTHER)
    left = gone(both, ME, NOW, excluded=False)
    assert [peer.id for peer in left.peers] == [OTHER]
    assert (gate(left).hosts, gate(left).ghosts) == (((OTHER, 1),), ())
    assert gate(left).warden() == OTHER
    assert gate(left).view > gate(both).view
    assert gone(left, OTHER, NOW, excluded=False).gates == ()


def test_the_seats_of_an_excluded_peer_are_ghosts_until_it_is_forgotten() -> None:
    both = sat(sat(START, ME, 3), OTHER)
    after = gone(both, ME, NOW, excluded=True)
    assert (gate(after).hosts, gate(after).ghosts) == (((OTHER, 1),), ((ME, 3),))
    assert gate(after).ghost_idents() == (identity(ME, 0), identity(ME, 1))  # no more than there are slots
    assert [peer.id for peer in after.excluded] == [ME]
    free = forgotten(after, ME, NOW)
    assert (gate(free).ghosts, gate(free).view > gate(after).view > gate(both).view) == ((), True)
    assert forgotten(free, ME, NOW) == free


def test_a_gate_of_ghosts_lives_on() -> None:
    """Otherwise its next user would get a slot that is still taken."""
    after = gone(sat(START, ME), ME, NOW, excluded=True)
    assert (gate(after).hosts, gate(after).idents(), gate(after).ghosts) == ((), (), ((ME, 1),))
    with pytest.raises(KMismatch):
        sat(after, OTHER, k=3)
    again = sat(after, OTHER)
    assert (gate(again).hosts, gate(again).ghosts) == (((OTHER, 1),), ((ME, 1),))
    assert forgotten(after, ME, NOW).gates == ()


def test_few_excluded_peers_are_remembered() -> None:
    many = START
    for peer in range(100, 100 + REMEMBERED + 3):
        many = gone(with_peer(many, peer), peer, NOW, excluded=True)
    assert [peer.id for peer in many.excluded] == list(range(103, 103 + REMEMBERED))


def with_peer(members: Members, peer: int) -> Members:
    return members_of(
        RosterBook().joined(
            as_key(members), peer, as_key(Newcomer(PeerRecord(peer, f"unix:/{peer}", f"unix:0:{peer}")))
        )
    )


def test_a_gate_ends_with_its_last_seat() -> None:
    one = sat(START, ME)
    assert changed(one, Rise("gpu"), OTHER, NOW) == one
    assert changed(one, Rise("gpu"), ME, NOW).gates == ()


def test_views_rise_whatever_the_clock_does() -> None:
    early = 0
    members = sat(sat(START, ME), ME, name="b")
    views = [gate(members).view, gate(members, "b").view]
    members = sat(members, ME, name="c", seconds=early)
    views.append(gate(members, "c").view)
    members = changed(members, Renew("gpu"), ME, early)
    views.append(gate(members).view)
    members = changed(members, Rise("c"), ME, early)
    members = sat(members, ME, k=5, name="c", seconds=early)  # nobody had it open, so k may differ
    views.append(gate(members, "c").view)
    assert views == sorted(set(views))
    assert views[-1] == members.epoch


def test_a_clock_that_is_far_ahead_is_not_believed() -> None:
    """Otherwise the epochs would run out, and not even a dead peer could be excluded."""
    members = sat(sat(START, ME), OTHER)
    for wrong in (1 << 32, EPOCH_ZERO + EPOCHS - 1, 1 << 60):
        after = gone(members, OTHER, wrong, excluded=True)
        assert after.epoch == members.epoch + 1
    last = replace(members, epoch=EPOCHS - 1)
    with pytest.raises(BadInput, match="fence epochs have run out"):
        gone(last, OTHER, NOW, excluded=True)


def test_what_is_refused() -> None:
    one = sat(START, ME)
    with pytest.raises(KMismatch, match="gate gpu is open with k=2, not k=3"):
        sat(one, OTHER, k=3)
    with pytest.raises(BadInput, match="gate gpu runs centralised, not bv95"):
        changed(one, Sit("gpu", 2, "bv95", 1), OTHER, NOW)
    with pytest.raises(BadInput, match="peer 5 is no longer a member"):
        sat(one, 5)
    for seats in (0, MOST_REQUESTS + 1):
        with pytest.raises(BadInput, match=f"1 to {MOST_REQUESTS} seats, not {seats}"):
            sat(one, OTHER, seats)
    assert changed(one, Renew("gpu"), OTHER, NOW) == one  # it has no seat there


def test_a_gate_that_comes_back_has_a_higher_view_than_it_ever_had() -> None:
    one = sat(START, ME)
    none = changed(one, Rise("gpu"), ME, NOW)
    assert none.gates == ()
    assert none.epoch == gate(one).view
    assert gate(changed(none, Sit("gpu", 3, "bv95", 1), OTHER, 0)).view > none.epoch  # with any k, by any clock


# The book, as the leader of the views uses it.


def book() -> RosterBook:
    found = RosterBook(START)
    found.seconds = NOW
    return found


def test_the_book_lets_newcomers_sit_down_as_they_join() -> None:
    about = as_key(Newcomer(PeerRecord(5, "unix:/5", "unix:0:5"), (Sit("gpu", 2, "bv95", 1),)))
    content = book().joined(book().first(), 5, about)
    assert gate(members_of(content)).hosts == ((5, 1),)
    with pytest.raises(BadInput, match="peer 5 cannot join as peer 5"):
        book().joined(content, 5, about)
    with pytest.raises(BadInput, match="peer 6 cannot join as peer 5"):
        book().joined(book().first(), 6, about)


def test_no_record_is_without_a_principal() -> None:
    """Whoever came after such a peer could take its id."""
    with pytest.raises(BadInput, match="peer 5 has no principal: an older version of fairgate runs there"):
        PeerRecord(5, "unix:/5", "")
    nameless = as_key(Newcomer(PeerRecord(5, "unix:/5", "unix:0:5")))
    (peer, address, _, *more), seats = nameless
    with pytest.raises(BadInput, match="peer 5 has no principal"):
        book().joined(book().first(), 5, ((peer, address, "", *more), seats))


def test_the_book_tells_which_gates_a_change_concerns() -> None:
    content = as_key(sat(sat(START, ME), OTHER, name="b"))
    assert book().concerns(content, OTHER, as_key(Rise("x"))) == ("x",)
    assert book().concerns(content, OTHER, as_key(Renew("x"))) == ()
    assert book().concerns(content, OTHER, ()) == ("b",)
    assert [book().leader_of(content, name) for name in ("gpu", "b", "c")] == [ME, OTHER, -1]


def test_the_book_applies_changes_of_the_asker_only() -> None:
    content = book().changed(book().first(), as_key(Sit("gpu", 2, "bv95", 4)), ME)
    assert gate(members_of(content)).hosts == ((ME, 4),)
    assert book().changed(content, as_key(Rise("gpu")), OTHER) == content
    excluded = book().excluded(content, ME)
    assert gate(members_of(excluded)).ghosts == ((ME, 4),)
    assert members_of(book().forgotten(excluded, ME)).gates == ()
    assert members_of(book().left(content, ME)).gates == ()


@pytest.mark.parametrize(
    "change", [(), (1,), ("sit", "gpu"), ("sit", "gpu", 2, "bv95", "many"), ("sit", "", 2, "b", 1)]
)
def test_the_book_refuses_nonsense(change: Any) -> None:
    with pytest.raises(BadInput):
        book().changed(book().first(), change, ME)


def test_the_book_refuses_a_roster_that_fits_no_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_BYTES < LIMIT // 3
    monkeypatch.setattr("fairgate.recovery.roster.MOST_BYTES", 4000)
    with pytest.raises(BadInput, match="more than 4000"):
        open_many_gates(20)


def open_many_gates(count: int) -> None:
    content = book().first()
    for number in range(count):
        content = book().changed(content, as_key(Sit(f"{number:0200}", 1, "bv95", 1)), ME)
