"""Selects the membership (one host or a cluster) and the journals of a peer from the arguments of join()."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fairgate.live.gate import NO_JOURNALS, NoJournals
from fairgate.live.membership import Membership
from fairgate.live.on_host import HostMembership

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine


def choose_membership(seeds: Sequence[str], network: Mapping[str, Any]) -> Callable[["LiveEngine"], Membership]:
    """The membership of this host, unless seeds or any network option were given."""
    if not seeds and not network:
        return HostMembership
    from fairgate.live.in_cluster import ClusterMembership, ClusterOptions  # noqa: PLC0415 (most peers need no network)

    return partial(ClusterMembership, network=ClusterOptions(seeds=tuple(seeds), **network))


def choose_journals(path: str | None) -> NoJournals:
    if path is None:
        return NO_JOURNALS
    from fairgate.live.journals import Journals  # noqa: PLC0415 (most peers write none)

    return Journals(path)
