"""Which options a protocol has, together with the layers below it."""

from collections.abc import Sequence
from typing import Any

from fairgate.core.mutex import Mutex
from fairgate.errors import BadInput
from fairgate.overlay.titles import PERIODS, UPKEEP
from fairgate.recovery.channel import RESEND
from fairgate.recovery.homes import BACKUPS

RING_OPTIONS = {"overlay_upkeep": UPKEEP, "overlay_wait": PERIODS * UPKEEP}
LAYER_OPTIONS: dict[str, dict[str, Any]] = {
    "channel": {"channel_resend": RESEND},
    "homes": {"backups": BACKUPS, "hold": True},
    "chord": RING_OPTIONS,
    "pastry": RING_OPTIONS,
}


def known_options(protocol: type[Mutex], stack: Sequence[str]) -> dict[str, Any]:
    """Option name -> its default, or a tuple of its choices with the default first."""
    known = dict(protocol.about.options)
    for layer in stack:
        known |= LAYER_OPTIONS.get(layer, {})
    return known


def option_of(protocol: type[Mutex], stack: Sequence[str], name: str) -> Any:
    """The default of this option, or its choices. Raises BadInput if there is no such option."""
    known = known_options(protocol, stack)
    if name in known:
        return known[name]
    others = f"its options are {', '.join(known)}" if known else "it has no options"
    raise BadInput(f"{protocol.about.name} has no option {name!r}: {others}")
