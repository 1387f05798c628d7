"""What one forged frame can do to a gate, case by case. fuzz.py tries many more."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from fairgate.core.ids import identity
from fairgate.core.message import decode
from fairgate.live import gate_checks, local_messages
from fairgate.live.ticket import INSIDE, WAITING
from fairgate.live.traffic import MESSAGE
from fairgate.net.codec import encode
from fairgate.net.rationed_log import LINES
from fairgate.recovery.census import Dated, Install
from tests.live.fuzz_world import GATE, World

STRANGER = 999


@pytest.fixture
def world() -> World:
    """Three peers with a seat each; the first is inside, and the others wait."""
    return started("bv95")


def started(protocol: str, k: int = 1) -> World:
    made = World(0, protocol, k, 3)
    for host in made.hosts.values():
        made.acquire(host)
    while made.deliver_one():
        pass
    assert len(made.inside()) == k
    return made


def sent(world: World, dst: int, src: int, key: Any, name: Any = GATE, seat: int = 0, by: int | None = None) -> str:
    """Sends a message of a gate from a seat of `src`. Returns why it was refused."""
    frame = (MESSAGE, name, identity(dst, seat), identity(src, 0), key)
    return world.receive(dst, src if by is None else by, encode(frame))


def dated(world: World, *key: Any) -> tuple[Any, ...]:
    """A message of the protocol in the current view. Messages with a token say how often it was sent."""
    return (Dated.tag, world.view, (1,) * decode(key).tokens(), key)


def test_nobody_speaks_for_the_seats_of_others(world: World) -> None:
    forged = dated(world, "bv.token", 0, 10**9, 0, ())
    for src, by in ((1, STRANGER), (1, 3), (3, STRANGER)):
        assert "is not one of peer" in sent(world, 2, src, forged, by=by)
    assert len(world.inside()) == 1
    assert world.spoiled == 0


def test_seats_that_are_not_in_the_view_are_not_heard(world: World) -> None:
    received = world.hosts[2].gate.counts.received
    assert sent(world, 2, STRANGER, dated(world, "bv.token", 0, 10**9, 0, ())) == ""
    assert world.hosts[2].gate.counts.received == received
    assert len(world.inside()) == 1


def test_frames_for_gates_and_seats_that_are_not_here_are_ignored(world: World) -> None:
    forged = dated(world, "bv.request", 0, identity(3, 0), 1)
    for name in ("another", 7, ("gate",)):
        assert sent(world, 2, 3, forged, name=name) == ""
    assert sent(world, 2, 3, forged, seat=40_000) == ""
    assert world.spoiled == 0


@pytest.mark.parametrize(
    "key",
    [
        (),
        ("nothing",),
        (Dated.tag,),
        ("ch.ack", 1),
        ("bv.request", 0, 1, 1),
        (Dated.tag, 2**64 - 1, (), ("bv.request", 0, 1, 1)),
        (Install.tag, 2, (), (), (), -1, False, -1, -1),
    ],
)
def test_keys_that_are_no_message_between_seats_are_refused_or_ignored(world: World, key: Any) -> None:
    sent(world, 2, 3, key)
    assert world.spoiled == 0
    world.calm_down()


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        ("bv95", ("bv.request", 10**15, identity(3, 0), 1)),
        ("bv95", ("bv.request", -(10**15), identity(3, 0), 1)),
        ("bv95", ("bv.token", 0, 1, 1, ())),
        ("suzuki_kasami", ("sk.request", STRANGER, 1)),
        ("suzuki_kasami", ("sk.token", 1, (), ())),
        ("centralised", ("ce.release", 10**15)),
    ],
)
def test_a_message_that_makes_a_node_fail_costs_a_connection_and_a_view(protocol: str, key: Any) -> None:
    world = started(protocol)
    target = 1  # it is inside, or keeps the queue
    before = world.view
    refused = sent(world, target, 3, dated(world, *key))
    assert "is not a valid message" in refused
    assert world.spoiled == 1
    assert world.view == before + 1
    assert len(world.inside()) == 1  # nobody lost a permit
    world.calm_down()


def test_an_index_beyond_all_bounds_is_found_by_a_later_message() -> None:
    """The message itself does no damage. A later request, of an honest user, finds the index."""
    world = started("fair_k")
    for host in world.hosts.values():
        for ticket in list(host.tickets):
            world.release(host, ticket)
    while world.deliver_one():
        pass
    for dst in (2, 3):
        sent(world, dst, 1, dated(world, "fk.token_locations", (1, 2, 3), 10**15))
    for host in world.hosts.values():
        world.acquire(host)  # raises nothing
    while world.deliver_one():
        pass
    assert world.spoiled
    world.calm_down()


def test_a_request_of_a_node_by_itself_does_not_loop_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The node becomes its own parent, and passes every further request on to itself."""
    monkeypatch.setattr(local_messages, "MOST", 100)
    world = started("naimi_trehel")
    for _ in range(3):
        sent(world, 1, 3, dated(world, "nt.request", identity(1, 0)))
    assert world.spoiled == 1
    assert "messages between its seats here do not end" in caplog.text
    world.calm_down()


def test_messages_for_unknown_views_are_kept_and_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    future = (Dated.tag, world.view + 1000, (), ("bv.request", 0, identity(3, 0), 1))
    assert sent(world, 2, 3, future) == ""
    (size,) = world.hosts[2].gate.early.sizes.values()
    monkeypatch.setattr(gate_checks, "MOST_EARLY", 5 * size)
    monkeypatch.setattr(gate_checks, "MOST_EARLY_OF_ALL", 7 * size)
    said = [sent(world, 2, 3, future) for _ in range(7)]
    assert said[:4] == [""] * 4
    assert "for a view that nobody else knows" in said[4]
    assert sent(world, 2, 1, future) == ""  # each peer has its own limit
    assert sent(world, 2, STRANGER, future) == ""
    assert "for a view that nobody else knows" in sent(world, 2, STRANGER + 1, future)
    assert world.spoiled == 0
    world.calm_down()


def test_messages_for_unknown_views_are_kept_as_small_as_they_came(world: World) -> None:
    queue = ((1, identity(3, 0)),) * 50_000
    tracemalloc.start()
    assert sent(world, 2, 3, (Dated.tag, world.view + 1000, (1,), ("bv.token", 0, 1, 0, queue))) == ""
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1 << 20


def test_a_message_from_a_later_view_waits_for_it(world: World) -> None:
    host = world.hosts[2]
    assert sent(world, 2, 3, (Dated.tag, world.view + 1, (), ("bv.request", 0, identity(3, 0), 5))) == ""
    assert len(host.gate.early.frames) == 1
    world.wants_view = True
    world.settle()
    assert not host.gate.early.frames
    world.calm_down()


def test_lines_about_spoilt_gates_are_rationed(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2 * LINES):
        world.hosts[2].gate.spoil(ValueError("this was forged"))
    assert 0 < len([record for record in caplog.records if "this was forged" in record.getMessage()]) <= LINES
    world.calm_down()


def test_a_spoilt_gate_keeps_its_requests() -> None:
    world = started("centralised")
    waiting = [ticket for host in world.hosts.values() for ticket in host.tickets if ticket.state == WAITING]
    sent(world, 1, 3, dated(world, "ce.release", 10**15))
    assert world.spoiled == 1
    assert [ticket.state for ticket in waiting] == [WAITING] * 2
    host, holder = next((host, one) for host in world.hosts.values() for one in host.tickets if one.state == INSIDE)
    while world.deliver_one():
        pass
    world.release(host, holder)
    while world.deliver_one():
        pass
    assert sorted(ticket.state for ticket in waiting) == [INSIDE, WAITING]
