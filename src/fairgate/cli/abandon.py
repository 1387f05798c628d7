"""`fairgate abandon-majority`: lets a cluster go on after most of its voters were lost for good."""

import logging
import sys
import time
from typing import Annotated

import typer

from fairgate.arguments import SECOND
from fairgate.cli.network.options import INSPECT_OPTIONS
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.network.typer_options import network_options
from fairgate.cli.status import saved_state
from fairgate.errors import BadInput
from fairgate.live.inspect import look
from fairgate.live.saved import SavedCluster, StateFolder, abandoned

ANSWER_SECONDS = 3.0


@network_options("state", *INSPECT_OPTIONS, checked=False)
def abandon_command(
    network: NetworkSettings,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> int:
    """Let a cluster go on from this host, after most of its voters were lost for good.

    A cluster that has lost the majority of its voters grants nothing, because
    it cannot know whether the others go on without it. If they are certainly
    gone, run this on one host whose standing peer was in the cluster, with
    that peer stopped. It refuses if a majority answers. Otherwise it waits
    until all leases are over. When the standing peer of this host is then
    started again by its usual command, it goes on as the only voter, and the
    other peers join it.

    Never run this on two hosts: there would be two clusters.
    """
    logging.disable(logging.WARNING)  # that most peers cannot be reached is no news
    folder = StateFolder(network.state_path())
    saved = saved_state(network)
    refuse_if_alive(network, saved)
    if not yes and not confirmed(saved):
        return 1
    wait = saved.wait() / SECOND
    print(f"waiting {wait:g} s until all leases are over", flush=True)
    time.sleep(wait)
    refuse_if_alive(network, saved)
    folder.save(abandoned(saved))
    print("done: start the standing peer of this host again by its usual command")
    return 0


def confirmed(saved: SavedCluster) -> bool:
    if not sys.stdin.isatty():
        raise BadInput("abandon-majority asks for confirmation, but stdin is not a terminal: use --yes")
    print(f"Cluster {saved.cluster} would go on from this host alone.")
    return typer.confirm("Are most of its voters gone for good?")


def refuse_if_alive(network: NetworkSettings, saved: SavedCluster) -> None:
    """Raises BadInput if a majority of the voters answers."""
    if not saved.addresses:
        return
    quick = network.joining((*network.join, *saved.addresses)).within(ANSWER_SECONDS)
    try:
        cluster = look(quick.directory()).cluster
    except BadInput as nobody:
        print(f"as expected, {nobody}")
        return
    if cluster.id == saved.cluster and cluster.survives >= 0:
        raise BadInput(f"a majority of the voters of cluster {saved.cluster} answers: it needs no such help")
