"""Which ground a peer stands on and what it writes, by what it was told."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from fairgate.live.gate import NO_JOURNALS, NoJournals
from fairgate.live.ground import Ground
from fairgate.live.host import HostGround

if TYPE_CHECKING:
    from fairgate.live.engine import Engine


def ground_of(seeds: Sequence[str], network: Mapping[str, Any]) -> Callable[["Engine"], Ground]:
    """Of this host, unless seeds or an address to listen at were given."""
    if not seeds and not network:
        return HostGround
    from fairgate.live.hosts import HostsGround, Network  # noqa: PLC0415 (most peers need only their host)

    return partial(HostsGround, network=Network(seeds=tuple(seeds), **network))


def journals_of(path: str | None) -> NoJournals:
    if path is None:
        return NO_JOURNALS
    from fairgate.live.journals import Journals  # noqa: PLC0415 (most peers write none)

    return Journals(path)
