"""`fairgate peer`: keeps gates open or a cluster running without using a gate itself, and serves metrics."""

import grp
import os
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from fairgate.arguments import MANY, MOST_K, ONE, check_k
from fairgate.cli.exits import complain, log_as_complaints
from fairgate.cli.gate_names import refuse_number
from fairgate.cli.network.options import CREATE_OPTIONS, OBSERVE_OPTIONS
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.network.typer_options import network_options
from fairgate.cli.notify import notify
from fairgate.cli.options import duration
from fairgate.cli.screen import counted
from fairgate.command.priority import come_first
from fairgate.command.signals import Interrupted, Signals
from fairgate.errors import BadInput
from fairgate.room import place
from fairgate.room.folder import NOBODY
from fairgate.room.peer import refuse_journal
from fairgate.room.pin import pin
from fairgate.room.room import Room

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine

LOOK_SECONDS = 1.0  # how often to check that this peer is still a member, or that its gates still have their files
NO_GATE = "keeps no gate open"
STATUS = "status"

Gates = Annotated[
    list[str] | None,
    typer.Argument(metavar="GATE", show_default=False, help="Gates to keep open, all with the same k. Default: none."),
]


@network_options(*CREATE_OPTIONS, *OBSERVE_OPTIONS, checked=False)
def peer_command(
    network: NetworkSettings,
    gates: Gates = None,
    k: Annotated[int, typer.Option("-k", metavar="K", help=f"Number of permits of each gate, 1 to {MOST_K}.")] = 1,
    protocol: Annotated[
        str | None,
        typer.Option(
            "--protocol",
            metavar="NAME",
            show_default=False,
            help=f"Protocol of the gates of a cluster. Default: {ONE} if K is 1, else {MANY}.",
        ),
    ] = None,
    print_unit: Annotated[
        bool, typer.Option("--print-unit", help="Print a systemd unit that runs this command, and exit.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With `status`: print one JSON object.")] = False,
    group: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="NAME",
            show_default=False,
            help="Users of this group can be guests of this peer in the cluster. Default: only its own user.",
        ),
    ] = None,
    drain: Annotated[
        float,
        duration(
            "--drain",
            "When a signal ends this peer of a cluster, let no guest in any more, and wait this long for those"
            " inside before it leaves (default: 0).",
        ),
    ] = 0.0,
) -> int:
    """Keep gates open, on this host or in a cluster, until a signal ends it.

    A gate that nobody uses can be opened with another k. A gate that is kept
    open keeps its k. With --metrics, this also serves the metrics of all gates
    of this host, or those of this peer of a cluster.

        fairgate peer gpu -k 3

        fairgate peer --metrics 9150

    In a cluster of several hosts, one peer creates the cluster, and the others
    join through the address of any peer. Peers started by this command may
    vote: with three of them the cluster survives the death of any one, with
    five the death of any two.

        fairgate keys init keys; fairgate keys add 10.0.0.5 --dir keys; fairgate keys add 10.0.0.6 --dir keys

        fairgate peer --create --listen 10.0.0.5:7400

        fairgate run gpu -k 3 --join 10.0.0.5:7400 -- ./train

    `fairgate peer status` shows the peers of a cluster, who votes, the leases,
    and how many more failures the cluster survives. It needs no address on a
    host whose standing peer has saved those of the others (see --state).

        fairgate peer status --join 10.0.0.5:7400

    Every host needs ca.crt and its own .crt and .key file, in
    ~/.config/fairgate/keys or in the directory given by --keys.
    """
    log_as_complaints()
    check_k(k)
    if gates == [STATUS] and not network.create:
        from fairgate.cli.status import status  # noqa: PLC0415 (asyncio is only needed in a cluster)

        return status(network, as_json)
    network.check()
    check(network, gates or [], protocol, group, drain)
    if print_unit:
        from fairgate.cli.unit import unit  # noqa: PLC0415

        print(unit(network, gates or [], k, protocol, group, drain), end="")
        return 0
    signals = Signals()
    try:
        if network.between_hosts:
            welcome = Welcome(group_id(group), drain)
            return in_cluster(network, gates or [], k, protocol, signals, welcome)
        return on_host(network, gates or [], k, signals)
    except Interrupted as by:
        leaving = f"{signal.Signals(by.signum).name}: leaving"
        notify(STOPPING="1", STATUS=leaving)
        say(leaving)
        return 130 if by.signum == signal.SIGINT else 0


def check(
    network: NetworkSettings, gates: Sequence[str], protocol: str | None, group: str | None, drain: float
) -> None:
    """Raises BadInput for options that do not go together. A unit would only fail when it is started."""
    if network.between_hosts:
        group_id(group)
        return
    if group is not None or drain:
        raise BadInput("--group and --drain are for peers of a cluster: add --join HOST:PORT, or --create")
    refuse_journal(network.journal)
    if protocol is not None:
        raise BadInput("--protocol is only for clusters: create one with --create --listen unix:PATH")
    if not gates and network.metrics is None:
        raise BadInput("nothing to do: name a gate to keep open, or use --metrics PORT")
    for gate in gates:
        refuse_number(gate)


def on_host(network: NetworkSettings, gates: Sequence[str], k: int, signals: Signals) -> int:
    """Pins gates. Returns when one of their files was removed."""
    places = [place.locate(gate) for gate in gates]
    with ExitStack() as stack, signals.raised():
        stack.enter_context(network.served_on_host(places, say))
        rooms = [stack.enter_context(Room(*where, k)) for where in places]
        for room in rooms:
            pin(room)
        kept = [f"keeps {', '.join(gates)} open with k={k}"] if gates else []
        metrics = [] if network.metrics is None else ["serves the metrics of this host's gates"]
        what = " and ".join(kept + metrics)
        say(f"pid {os.getpid()} {what} until a signal ends it")
        notify(READY="1", STATUS=what)
        while not (removed := [room for room in rooms if not room.file.is_linked()]):
            signals.wait(LOOK_SECONDS)
    complain(f"gate {removed[0].gate}: its file was removed")
    return 1


class Welcome(NamedTuple):
    """How a peer of a cluster treats its guests."""

    group: int
    drain: float  # seconds


def group_id(name: str | None) -> int:
    """Raises BadInput if there is no such group. A number needs no name on this host."""
    if name is None:
        return NOBODY
    try:
        return int(name) if name.isdecimal() else grp.getgrnam(name).gr_gid
    except KeyError:
        raise BadInput(f"there is no group {name!r:.60}") from None


def in_cluster(
    network: NetworkSettings, gates: Sequence[str], k: int, protocol: str | None, signals: Signals, welcome: Welcome
) -> int:
    from fairgate.live.guests import Guests  # noqa: PLC0415 (asyncio is only needed in a cluster)
    from fairgate.live.keep_open import keep_open  # noqa: PLC0415
    from fairgate.room.clusters import announce, make_folder  # noqa: PLC0415

    folder = make_folder(network.name, welcome.group)  # fails now, not after joining
    announce(folder, network.name, tuple(map(str, network.addresses(network.join))))
    signals.catch_stops()  # the others would wait for a stopped peer
    come_first()
    with signals.raised():
        peer = network.peer(standing=True)
    with peer, network.served(peer, say), network.advertised(peer):
        engine = peer.engine
        run = {keep_open(engine, gate, k, protocol) for gate in gates}
        kept = f"keeps {', '.join(gates)} open (k={k}, {', '.join(sorted(run))})" if gates else NO_GATE
        where = f"of cluster {network.name} at {engine.identity.address} (guarantee: {engine.membership.guarantee})"
        with Guests(engine, network.name, welcome.group) as guests:
            say(f"pid {engine.pid} is a peer {where} and {kept} until a signal ends it")
            told = status_line(engine, network.name)
            notify(READY="1", STATUS=told)
            try:
                with signals.raised():
                    while not engine.closed:
                        signals.wait(LOOK_SECONDS)
                        status = status_line(engine, network.name)
                        if status != told:
                            notify(STATUS=status)
                            told = status
            except Interrupted as by:
                if welcome.drain and (inside := guests.count_inside()):
                    name = signal.Signals(by.signum).name
                    notify(STOPPING="1", STATUS=f"{name}: draining, {counted(inside, 'guest')} inside")
                if welcome.drain and not guests.drain(welcome.drain):
                    complain(f"{counted(guests.count_inside(), 'guest')} did not leave within {welcome.drain:g} s")
                raise
    return 1


def status_line(engine: "LiveEngine", cluster: str) -> str:
    peers = counted(len(engine.members.peers), "peer")
    return f"{peers} in cluster {cluster}, guarantee: {engine.membership.guarantee}"


def say(what: str) -> None:
    print(what, flush=True)
