"""The methods that are derived for a record (core/declare.py)."""

from __future__ import annotations

import pytest

from fairgate.core.ids import NIL
from fairgate.core.units import NEVER
from fairgate.protocols.sigma.votes import Replica, Resp, Waiter


def changed() -> Resp:
    r = Resp(3, 7, NIL)
    r.key, r.weight = 99, 5
    r.owner, r.grant, r.until, r.wanted = 4, 6, 1_500, True
    return r


def test_clear_resets_every_field_that_has_a_default() -> None:
    r = changed()
    r.clear()
    assert r.key_at(0) == Resp(3, 7, NIL).key_at(0)
    assert (r.owner, r.grant, r.until, r.wanted) == (NIL, 0, NEVER, False)


def test_clear_leaves_the_other_fields_alone() -> None:
    r = changed()
    r.clear()
    assert (r.i, r.node, r.key, r.weight) == (3, 7, 99, 5)


def test_a_key_contains_the_time_left_and_is_valid_on_another_clock() -> None:
    r = changed()
    later = Resp.from_key(r.key_at(1_000), 5_000)
    assert (later.until, later.due) == (5_500, NEVER)
    assert later.key_at(5_000) == r.key_at(1_000)


@pytest.mark.parametrize("form", [tuple, list])
def test_derived_fields_are_complete_after_loading(form: type) -> None:
    rep = Replica(2)
    for client in (5, 4):
        rep.insert(Waiter(1, client, 0, 0, NEVER))
    loaded = Replica.from_key(form(rep.key_at(0)), 0)
    assert [w.client for w in loaded.Queue] == [4, 5]
    assert all(loaded.waiting[w.client] is w for w in loaded.Queue)


def test_every_record_gets_its_own_containers() -> None:
    assert Replica(0).waiting is not Replica(0).waiting
