"""`fairgate peer`: a peer that stands."""

import signal
from typing import Annotated

import typer

from fairgate import sync
from fairgate.cli.ends import log_as_complaints
from fairgate.live.haunt import rule_of
from fairgate.live.kinds import default_protocol
from fairgate.live.signals import Interrupted, Signals
from fairgate.live.standing import stand

LOOK_SECONDS = 1.0  # whether the others still have us

Gates = Annotated[
    list[str] | None, typer.Argument(metavar="[GATE]...", show_default=False, help="Gates to keep open, all of this k.")
]


def peer_command(
    gates: Gates = None,
    k: Annotated[int, typer.Option("-k", metavar="K", help="How many they let in.")] = 1,
    protocol: Annotated[
        str | None, typer.Option("--protocol", metavar="NAME", show_default=False, help="By which they do.")
    ] = None,
) -> int:
    """Be a peer of this host until a signal comes, and keep gates open.

    A gate closes when its last peer leaves, and may then be opened with another k. One that is kept open stays as it
    is, and what outlives its fairgate is seen to be over at once.
    """
    log_as_complaints()
    signals = Signals()
    protocol = protocol or default_protocol(k)
    with sync.join() as peer:
        for gate in gates or ():
            stand(peer.engine, gate, k, protocol)
        kept = f"keeps {', '.join(gates)} open (k={k}, {protocol})" if gates else "keeps no gate open"
        folder = rule_of(peer.engine).folder
        print(f"pid {peer.engine.pid} is a peer in {folder} and {kept} until a signal ends it", flush=True)
        try:
            with signals.raised():
                while not peer.engine.closed:
                    signals.wait(LOOK_SECONDS)
        except Interrupted as by:
            print(f"{signal.Signals(by.signum).name}: leaving")
            return 130 if by.signum == signal.SIGINT else 0
    return 1
