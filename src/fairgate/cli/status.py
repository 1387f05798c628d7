"""`fairgate peer status`: the peers of a cluster, and how many more failures it survives."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from fairgate.arguments import printable
from fairgate.cli.inspect.in_cluster import guarantee, survival
from fairgate.cli.inspect.view import NONE
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.screen import counted, plain_table, seconds, stdout
from fairgate.errors import BadInput
from fairgate.live.inspect import ClusterPicture, MemberPicture, look
from fairgate.live.saved import SavedCluster, read_saved
from fairgate.room.clusters import find_standing


def status(network: NetworkSettings, as_json: bool) -> int:
    cluster = look(directory_of(network).directory()).cluster
    if as_json:
        print(json.dumps(for_programs(cluster)))
    else:
        stdout().print(shown(cluster, network.name))
    return 0 if cluster.survives >= 0 else 1


def directory_of(network: NetworkSettings) -> NetworkSettings:
    """The settings with addresses to ask: those given, or else those that the standing peer of this host knows."""
    if network.between_hosts:
        return network
    standing = find_standing((), network.name)
    if standing is not None and standing.is_alive():
        return network.joining(standing.addresses)
    saved = saved_state(network)
    return network.joining((saved.address, *saved.addresses))


def saved_state(network: NetworkSettings) -> SavedCluster:
    saved = read_saved(Path(network.state_path()))
    if saved is None:
        raise BadInput(
            f"no standing peer of cluster {network.name} has run here ({network.state_path()}): use --join HOST:PORT"
        )
    return saved


def for_programs(cluster: ClusterPicture) -> dict[str, Any]:
    members = [asdict(member) for member in cluster.members]
    excluded = [{"pid": peer.pid, "host": peer.host, "address": peer.address} for peer in cluster.excluded]
    return {
        "id": cluster.id,
        "version": cluster.version,
        "lease": cluster.lease,
        "guarantee": guarantee(cluster),
        "survives": cluster.survives,
        "members": members,
        "excluded": excluded,
    }


def shown(cluster: ClusterPicture, name: str) -> RenderableType:
    title = f"cluster {name} ({cluster.id}): {counted(len(cluster.members), 'peer')}, lease {seconds(cluster.lease)}"
    table = plain_table(Text(printable(title)))
    for column in ("address", "pid", "host", "role", "lease left", ""):
        table.add_column(column, justify="right" if column == "pid" else "left", no_wrap=bool(column))
    for one in sorted(cluster.members, key=lambda one: (not one.voter, not one.standing, one.address)):
        left = NONE if one.lease_left is None else seconds(round(one.lease_left, 1))
        cells = (one.address, str(one.pid), one.host, role(one), left, one.why)
        table.add_row(*[printable(cell) for cell in cells], style="yellow" if one.why else "")
    gone = [
        Text(printable(f"excluded: pid {peer.pid} on {peer.host} at {peer.address}: {why(peer.id, cluster)}"))
        for peer in cluster.excluded
    ]
    return Group(table, *gone, Text(f"guarantee: {guarantee(cluster)}; {survival(cluster)}"))


def role(one: MemberPicture) -> str:
    if one.leads:
        return "voter, leads"
    return "voter" if one.voter else "standing" if one.standing else "member"


def why(peer: int, cluster: ClusterPicture) -> str:
    over = "its lease may not be over yet" if peer in cluster.lingering else "its lease is over"
    return f"it could not be reached; {over}"
