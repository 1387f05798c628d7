"""What is derived for a record (core/declare.py)."""

from __future__ import annotations

import pytest

from fairgate.core.ids import NIL
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.votes import Replica, Resp, Waiter


def changed() -> Resp:
    r = Resp(3, 7)
    r.key, r.weight = 99, 5
    r.owner, r.grant, r.until, r.wanted = 4, 6, 1_500, True
    return r


def test_clear_gives_every_field_with_a_default_this_value_again() -> None:
    r = changed()
    r.clear()
    assert r.key_at(0) == Resp(3, 7).key_at(0)
    assert (r.owner, r.grant, r.until, r.wanted) == (NIL, 0, NEVER, False)


def test_clear_leaves_the_other_fields_alone() -> None:
    r = changed()
    r.clear()
    assert (r.i, r.node, r.key, r.weight) == (3, 7, 99, 5)


def test_a_key_has_the_time_left_and_outlives_its_clock() -> None:
    r = changed()
    later = Resp.from_key(r.key_at(1_000), 5_000)
    assert (later.until, later.due) == (5_500, NEVER)
    assert later.key_at(5_000) == r.key_at(1_000)


@pytest.mark.parametrize("form", [tuple, list])
def test_what_follows_from_the_key_is_there_when_it_is_loaded(form: type) -> None:
    rep = Replica(2)
    for client in (5, 4):
        rep.insert(Waiter(1, client, 0, 0))
    loaded = Replica.from_key(form(rep.key_at(0)), 0)
    assert [w.client for w in loaded.Queue] == [4, 5]
    assert all(loaded.waiting[w.client] is w for w in loaded.Queue)


def test_containers_are_made_anew_for_every_record() -> None:
    assert Replica(0).waiting is not Replica(0).waiting
