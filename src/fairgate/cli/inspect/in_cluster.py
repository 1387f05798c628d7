"""`fairgate who`, `top` and `break` for the gates of a cluster, whose peers are asked."""

import json
import time
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from fairgate.arguments import printable
from fairgate.cli.exits import GOOD, WRONG, complain
from fairgate.cli.inspect.view import NONE, WAITS, Row, below_each_other, confirmed, gate_table, screen
from fairgate.cli.screen import counted, seconds, stdout
from fairgate.errors import BadInput, FairgateError
from fairgate.live.directory import ClusterDirectory
from fairgate.live.in_cluster import LEASE
from fairgate.live.inspect import ClusterPicture, GatePicture, Inspector, ListedPerson, Picture, look, run
from fairgate.room.clusters import NO_MAJORITY

IF_DEAD = "if it is dead, its slots are free when its lease is over"

# who.


def who(directory: ClusterDirectory, gate: str | None, as_json: bool) -> int:
    picture = chosen(look(directory), gate)
    if as_json:
        print(json.dumps(for_programs(picture, directory)))
    if gate is not None and not picture.gates:
        complain(f"no gate {gate} is open here ({counted(picture.peers, 'peer')} {directory.where()})")
        return WRONG
    if not as_json:
        stdout().print(shown(picture, gate, directory))
    return GOOD


def chosen(picture: Picture, gate: str | None) -> Picture:
    """The picture restricted to one gate, or all of it."""
    return Picture(tuple([one for one in picture.gates if gate in (None, one.name)]), picture.cluster)


def for_programs(picture: Picture, directory: ClusterDirectory) -> dict[str, Any]:
    """The picture for --json. Times are seconds since 1970; internal ids and addresses are left out."""

    def plain(one: Any, left_out: tuple[str, ...]) -> dict[str, Any]:
        return {name: value for name, value in asdict(one).items() if name not in left_out}

    gates = []
    for gate in picture.gates:
        told = {**asdict(gate), "mixed": gate.mixed}
        for name in ("inside", "waiting"):
            told[name] = [plain(one, ("ident", "peer")) for one in getattr(gate, name)]
        for name in ("silent", "ghosts"):
            told[name] = [{"pid": peer.pid, "host": peer.host} for peer in getattr(gate, name)]
        gates.append(told)
    return {
        **directory.named(),
        "guarantee": guarantee(picture.cluster),
        "survives": picture.cluster.survives,
        "peers": picture.peers,
        "gates": gates,
    }


def shown(picture: Picture, gate: str | None, directory: ClusterDirectory) -> RenderableType:
    there = f"{counted(picture.peers, 'peer')} {directory.where()}"
    last = Text(f"{there}, guarantee: {guarantee(picture.cluster)}; {survival(picture.cluster)}")
    if not picture.gates:
        nothing = "no gate is open here" if gate is None else f"no gate {gate} is open here"
        return below_each_other([Text(nothing), last])
    return below_each_other([*[gate_shown(one) for one in picture.gates], last])


def guarantee(cluster: ClusterPicture) -> str:
    return NO_MAJORITY if cluster.survives < 0 else LEASE


def survival(cluster: ClusterPicture) -> str:
    if cluster.survives < 0:
        return "nobody is let in, because no majority of the voters answers"
    return f"survives {counted(cluster.survives, 'more failure')}"


def gate_shown(gate: GatePicture) -> RenderableType:
    rows = [row(one, NONE if one.slot is None else str(one.slot)) for one in gate.inside]
    rows += [row(one, WAITS) for one in gate.waiting]
    silent = [
        Text(
            printable(f"pid {peer.pid} on {peer.host} does not answer; it may be stopped. What it holds is unknown."),
            style="yellow",
        )
        for peer in gate.silent
    ]
    ghosts = [
        Text(
            printable(f"pid {peer.pid} on {peer.host} was excluded; what it may hold is free when its lease is over."),
            style="yellow",
        )
        for peer in gate.ghosts
    ]
    return Group(gate_table(title_of(gate), rows), *silent, *ghosts)


def title_of(gate: GatePicture) -> str:
    least = "at least " if gate.silent else ""
    inside = f"{'~' if gate.mixed else least}{len(gate.inside)} of {gate.k} inside"
    remarks = [gate.protocol]
    if gate.silent:
        missing = f"{counted(len(gate.silent), 'peer')} {'does' if len(gate.silent) == 1 else 'do'} not answer"
        remarks.insert(0, missing)
    if gate.mixed:
        remarks.insert(0, "the peers answered at different moments")
    return f"{gate.name}: {inside}, {least}{len(gate.waiting)} waiting ({'; '.join(remarks)})"


def row(one: ListedPerson, where: str) -> Row:
    now = time.time()
    cells = {
        "slot": where,
        "for": seconds(round(max(now - one.since, 0.0), 1)),
        "pid": str(one.pid),
        "host": one.host,
        "fence": NONE if one.fence is None else str(one.fence),
        "lease left": NONE if one.deadline is None else seconds(max(one.deadline - now, 0.0)),
        "note": one.note,
    }
    return Row(cells, "dim" if where == WAITS else "")


# top.


def top(directory: ClusterDirectory, gate: str | None) -> int:
    return run(watch(directory, gate))


async def watch(directory: ClusterDirectory, gate: str | None) -> int:
    async with Inspector(directory) as asker:
        picture = await asker.look()  # errors are reported before the screen is taken over
        with screen() as on:
            while on.show(shown(chosen(picture, gate), gate, directory)):
                picture = await asker.look()
    return 0


# break.


def break_in(directory: ClusterDirectory, gate: str, slot: int, yes: bool) -> int:
    return run(broken(directory, gate, slot, yes))


async def broken(directory: ClusterDirectory, name: str, slot: int, yes: bool) -> int:
    async with Inspector(directory) as asker:
        gate = (await asker.look()).gate(name)
        if gate is None:
            raise BadInput(f"no gate {name} is open here")
        whom = find(gate, slot)
        which = f"slot {slot}" if whom.slot is not None else "a permit"  # not all protocols have slots
        if not yes and not confirmed(f"{which} of gate {name} is taken by pid {whom.pid}", whom.note):
            return 1
        if not await asker.break_in(gate, whom):
            complain(
                f"{which} of gate {name} is still taken: its peer (pid {whom.pid}) did not answer in time;"
                f" try again, and {IF_DEAD}"
            )
            return 1
    print(f"{which} of gate {name} is free again: pid {whom.pid} was notified, but may still be running for a moment")
    return 0


def find(gate: GatePicture, slot: int) -> ListedPerson:
    """The holder in this slot, or with this pid if the protocol has no slots. Raises FairgateError."""
    for one in gate.inside:
        if slot == (one.pid if one.slot is None else one.slot):
            return one
    silent = ", ".join([f"pid {peer.pid}" for peer in gate.silent])
    hint = f", as far as is known; {silent} does not answer: {IF_DEAD}" if silent else ""
    if any(one.slot is None for one in gate.inside):
        hint = f"; {gate.protocol} has no slots, so give the pid that `fairgate who` shows{hint}"
        raise FairgateError(f"nobody with pid {slot} is inside gate {gate.name}{hint}")
    if slot >= gate.k:
        raise BadInput(f"gate {gate.name} has no slot {slot}: its slots are 0 to {gate.k - 1}")
    raise FairgateError(f"nobody is in slot {slot} of gate {gate.name}{hint}")
