"""`fairgate who`, `top`, `break` and `resize` for the gates of this host, which are read from their files."""

import json
import os
import pwd
import time
from functools import cache
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from fairgate.arguments import SECOND, check_k, printable
from fairgate.cli.exits import GOOD, WRONG, complain
from fairgate.cli.inspect.view import NONE, WAITS, Row, below_each_other, confirmed, gate_table, screen
from fairgate.cli.screen import counted, seconds, stdout
from fairgate.errors import BadInput, FairgateError
from fairgate.room import place
from fairgate.room.calls import clock
from fairgate.room.clusters import NO_MAJORITY
from fairgate.room.host import ClusterView, GateView, HostView, Visitor, look, look_at, look_at_clusters
from fairgate.room.room import Room

MOST_UNUSED = 8  # names in the line of unused gates


class Seen(NamedTuple):
    """The gates of this host, and the rooms of clusters on it that are in use."""

    host: HostView
    clusters: list[ClusterView]

    def is_empty(self) -> bool:
        return not self.host.gates and not any(cluster.rooms.gates for cluster in self.clusters)

    def unusable(self) -> list[tuple[str, str]]:
        return [one for view in (self.host, *[cluster.rooms for cluster in self.clusters]) for one in view.unusable]


def look_once(gate: str | None) -> Seen:
    """All gates, or those with this name."""
    clusters = [chosen(cluster, gate) for cluster in look_at_clusters()]
    if gate is None:
        return Seen(look(place.gates_folder(create=False)), clusters)
    folder, name = place.locate(gate, create=False)
    found = look_at(folder, name)
    return Seen(HostView(folder, (found,) if found else (), ()), clusters)


def chosen(cluster: ClusterView, gate: str | None) -> ClusterView:
    """Its rooms that are in use, or the one with this name."""
    rooms = [one for one in cluster.rooms.gates if (one.in_use if gate is None else one.name == gate)]
    return cluster._replace(rooms=cluster.rooms._replace(gates=tuple(rooms)))


# who.


def who(gate: str | None, as_json: bool) -> int:
    seen = look_once(gate)
    for _, why in seen.unusable():
        complain(printable(why))
    if as_json:
        print(json.dumps(for_programs(seen, gate)))
    if gate is not None and seen.is_empty():
        complain(missing(seen.host.folder, gate))
        return WRONG
    if not as_json:
        stdout().print(shown(seen, gate))
    return GOOD


def for_programs(seen: Seen, gate: str | None) -> dict[str, Any]:
    """For --json. A gate that nobody uses is only named, unless it was asked for."""
    host = seen.host
    gates = [one for one in host.gates if gate is not None or one.in_use]
    return {
        "folder": host.folder,
        "guarantee": "host",
        "gates": [gate_for_programs(one) for one in gates],
        "unused": [one.name for one in host.gates if not one.in_use],
        "unusable": [{"name": name, "why": why} for name, why in seen.unusable()],
        "clusters": [cluster_for_programs(one) for one in seen.clusters],
    }


def cluster_for_programs(cluster: ClusterView) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "id": cluster.cluster_id or None,
        "folder": cluster.rooms.folder,
        "peer": cluster.pid or None,
        "guarantee": cluster.guarantee if cluster.pid else None,
        "gates": [gate_for_programs(gate) for gate in cluster.rooms.gates],
    }


def gate_for_programs(gate: GateView) -> dict[str, Any]:
    counters = gate.counters
    return {
        "name": gate.name,
        "path": gate.path,
        "k": gate.k,
        "inside": [for_program(one, None) for one in gate.inside],
        "waiting": [for_program(one, order) for order, one in enumerate(gate.waiting, 1)],
        "pinned_by": gate.pins,
        "entries": counters.grants,
        "longest": counters.longest / SECOND,
        "lost": counters.losses,
    }


def for_program(visitor: Visitor, order: int | None) -> dict[str, Any]:
    request = visitor.request
    return {
        "pid": request.pid,
        "host": os.uname().nodename,
        "user": user_name(request.user),
        "slot": request.slots[0] if request.slots else None,
        "slots": request.slots,
        "permits": request.permits,
        "order": order,
        "fence": request.fence if request.inside else None,
        "since": on_calendar(request.since if request.inside else request.asked),
        "deadline": on_calendar(request.deadline) if request.deadline else None,
        "note": request.note,
        "ghost": visitor.left_behind,
        "group": request.group or None,
        "stopped": visitor.stopped,
        "other_namespace": not visitor.visible,
    }


def on_calendar(moment: int) -> float:
    """Seconds since 1970."""
    return time.time() - (clock() - moment) / SECOND


@cache
def user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except (KeyError, OverflowError):
        return str(user)


# What people see.


def shown(seen: Seen, gate: str | None) -> RenderableType:
    host = seen.host
    used = [one for one in host.gates if gate is not None or one.in_use]
    unused = [one.name for one in host.gates if not one.in_use] if gate is None else []
    parts = [gate_shown(one, title_of(one)) for one in used]
    parts += [gate_shown(one, title_in(cluster, one)) for cluster in seen.clusters for one in cluster.rooms.gates]
    if not parts:
        nothing = f"no gate is in use here ({host.folder})" if gate is None else missing(host.folder, gate)
        parts.append(Text(printable(nothing)))
    if unused:
        parts.append(Text(printable(f"{counted(len(unused), 'unused gate')}: {some_of(unused)}"), style="dim"))
    return below_each_other(parts)


def missing(folder: str, gate: str) -> str:
    return f"there is no gate {gate} here ({folder})"


def some_of(names: list[str]) -> str:
    more = len(names) - MOST_UNUSED
    return ", ".join(names[:MOST_UNUSED]) + (f" and {more} more" if more > 0 else "")


def title_of(gate: GateView) -> str:
    title = f"{gate.name}: {gate.taken} of {gate.k} inside, {len(gate.waiting)} waiting"
    return title + (f" (kept open by pid {', '.join(map(str, gate.pins))})" if gate.pins else "")


def title_in(cluster: ClusterView, gate: GateView) -> str:
    """Other hosts may have more of them inside and waiting."""
    title = f"{gate.name} of cluster {cluster.name}: {gate.taken} of this host inside, {len(gate.waiting)} waiting"
    if not cluster.pid:
        return f"{title} (its peer is gone)"
    return title + (f" ({NO_MAJORITY})" if cluster.guarantee == NO_MAJORITY else "")


def gate_shown(gate: GateView, title: str) -> RenderableType:
    rows = [row(one, ",".join(map(str, one.request.slots))) for one in gate.inside]
    rows += [row(one, f"{WAITS} {order}") for order, one in enumerate(gate.waiting, 1)]
    return gate_table(title, rows)


def row(visitor: Visitor, where: str) -> Row:
    request, now = visitor.request, clock()
    since = request.since if request.inside else request.asked
    left = (request.deadline - now) / SECOND
    cells = {
        "slot": where,
        "for": seconds(round(max(now - since, 0) / SECOND, 1)),
        "pid": named(visitor).removeprefix("pid ").removeprefix("process "),
        "user": user_name(request.user),
        "state": state(visitor) or NONE,
        "fence": str(request.fence) if request.inside else NONE,
        "lease left": NONE if not request.deadline else seconds(left) if left > 0 else "over",
        "note": request.note,
    }
    style = "yellow" if state(visitor) else "" if request.inside else "dim"
    return Row(cells, style)


def named(visitor: Visitor) -> str:
    """The process, or what is left of it."""
    request = visitor.request
    return f"process group {request.group}" if visitor.left_behind and request.group else f"pid {request.pid}"


def state(visitor: Visitor) -> str:
    """What is unusual about it, or ""."""
    left_behind, elsewhere = visitor.left_behind, not visitor.visible
    states = ((visitor.stopped, "stopped"), (left_behind, "left behind"), (elsewhere, "other namespace"))
    return ", ".join([name for holds, name in states if holds])


# top.


def top(gate: str | None) -> int:
    seen = look_once(gate)  # errors are reported before the screen is taken over
    with screen() as on:
        while on.show(with_unusable(seen, gate)):
            seen = look_once(gate)
    return 0


def with_unusable(seen: Seen, gate: str | None) -> RenderableType:
    return below_each_other([shown(seen, gate), *[Text(printable(why), style="yellow") for _, why in seen.unusable()]])


# break.


def break_in(name: str, slot: int, yes: bool) -> int:
    folder, gate = place.locate(name, create=False)
    holder = holder_of(existing(folder, gate), slot)
    if not yes and not confirmed(f"slot {slot} of gate {name} is taken by {named(holder)}", holder.request.note):
        return 1
    with Room(folder, gate, create=False) as room:
        if not room.revoke(slot, holder.request.fence):
            complain(f"{named(holder)} has left slot {slot} of gate {name} meanwhile: nothing was revoked")
            return 1
    taken = [str(each) for each in holder.request.slots]
    slots = f"slot {taken[0]} of gate {name} is" if len(taken) == 1 else f"slots {', '.join(taken)} of gate {name} are"
    print(f"{slots} free again: {meaning(holder)}")
    return 0


def existing(folder: str, gate: str) -> GateView:
    found = look_at(folder, gate)
    if found is None:
        raise BadInput(missing(folder, gate))
    return found


def holder_of(gate: GateView, slot: int) -> Visitor:
    for visitor in gate.inside:
        if slot in visitor.request.slots:
            return visitor
    if slot >= gate.k:
        raise BadInput(f"gate {gate.name} has no slot {slot}: its slots are 0 to {gate.k - 1}")
    raise FairgateError(f"nobody is in slot {slot} of gate {gate.name}")


def meaning(holder: Visitor) -> str:
    """What the holder knows of the revocation, for the last line of `break`."""
    group = holder.request.group
    if holder.left_behind and group:
        return f"process group {group} was not notified and may still be running (to end it: kill -- -{group})"
    if holder.left_behind:
        return f"{named(holder)} is dead; those that inherited its permit were not notified and may still be running"
    if holder.stopped:
        return f"{named(holder)} is stopped; it will notice when it continues"
    of = "" if holder.visible else " of another pid namespace"
    return f"{named(holder)}{of} was notified, but may still be running for a moment"


# resize.


def resize(name: str, k: int) -> int:
    folder, gate = place.locate(name, create=False)
    check_k(k)
    existing(folder, gate)
    with Room(folder, gate, create=False) as room:
        room.resize(k)
    taken = existing(folder, gate).taken
    print(f"gate {name}: k is now {k}" + (f"; {taken} are still inside" if taken > k else ""))
    return 0
