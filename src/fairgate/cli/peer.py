"""`fairgate peer`: a standing peer, which keeps gates open or a cluster running without using a gate itself."""

import signal
from typing import Annotated

import typer

from fairgate.arguments import MOST_K, check_k
from fairgate.cli.exits import log_as_complaints
from fairgate.cli.network.options import CREATE_OPTIONS, OBSERVE_OPTIONS
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.network.typer_options import network_options
from fairgate.command.signals import Interrupted, Signals
from fairgate.live.engine import LiveEngine
from fairgate.live.keep_open import keep_open
from fairgate.live.live_protocols import MANY, ONE, default_protocol
from fairgate.live.on_host import HostMembership

LOOK_SECONDS = 1.0  # how often to check that this peer is still a member
NO_GATE = "keeps no gate open"

Gates = Annotated[
    list[str] | None,
    typer.Argument(metavar="GATE", show_default=False, help="Gates to keep open, all with the same k. Default: none."),
]


@network_options(*CREATE_OPTIONS, *OBSERVE_OPTIONS)
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
            help=f"Protocol of the gates. Default: {ONE} if K is 1, else {MANY}.",
        ),
    ] = None,
) -> int:
    """Run a peer that keeps gates open, on this host or in a cluster, until a signal ends it.

    A gate closes when its last peer leaves, and can then be opened with
    another k. A gate that is kept open keeps its k and its protocol, and slots
    whose processes outlived their fairgate are freed as soon as those end.

        fairgate peer gpu -k 3

    In a cluster of several hosts, one peer creates the cluster and keeps the
    list of its peers. It must stay up: without it no peer can join or leave.
    The others join through the address of any peer.

        fairgate keys init keys; fairgate keys add 10.0.0.5 --dir keys; fairgate keys add 10.0.0.6 --dir keys

        fairgate peer --create --listen 10.0.0.5:7400

        fairgate run gpu -k 3 --join 10.0.0.5:7400 -- ./train

    Every host needs ca.crt and its own .crt and .key file, in
    ~/.config/fairgate/keys or in the directory given by --keys.
    """
    log_as_complaints()
    check_k(k)
    signals = Signals()
    signals.catch_stops()
    try:
        with signals.raised():
            peer = network.peer()
        with peer, network.served(peer, say), network.advertised(peer):
            for gate in gates or ():
                keep_open(peer.engine, gate, k, protocol or default_protocol(k))
            kept = f"keeps {', '.join(gates)} open (k={k}, {protocol or default_protocol(k)})" if gates else NO_GATE
            say(f"pid {peer.engine.pid} is a peer {where(peer.engine, network)} and {kept} until a signal ends it")
            with signals.raised():
                while not peer.engine.closed:
                    signals.wait(LOOK_SECONDS)
    except Interrupted as by:
        say(f"{signal.Signals(by.signum).name}: leaving")
        return 130 if by.signum == signal.SIGINT else 0
    return 1


def where(engine: LiveEngine, network: NetworkSettings) -> str:
    if isinstance(engine.membership, HostMembership):
        return f"in {engine.membership.rule.folder}"
    return f"of cluster {network.name} at {engine.identity.socket} (guarantee: {engine.membership.guarantee})"


def say(what: str) -> None:
    print(what, flush=True)
