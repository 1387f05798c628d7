"""What a protocol promises, and whether a simulation asks for more than that.

A run that fails proves something only if its faults are among those that the protocol says it survives. The
swarm draws within these bounds, and shrinking stays within them: else every failure would shrink to a crash
that nobody promised to survive.
"""

from fairgate.core.mutex import Mutex
from fairgate.core.units import SECOND
from fairgate.registry import find_protocol
from fairgate.sim.faults import FOR_EVER, STRETCH, Faults, parse_faults
from fairgate.sim.run import Config, uniform_bounds

SLACK = 1.1  # a time that a protocol waits for two messages is so many times what they take on average
RESENDS = 10  # the same where messages may be lost, and come with the second or third resend
SHORTEST = 0.3  # seconds; where messages take none, a shorter lease would be nothing but renewals


def claims(protocol: type[Mutex]) -> frozenset[str]:
    """The faults it must survive. A holed version is a subclass of the whole one, and is held to what that promises."""
    return frozenset(
        kind for base in protocol.__mro__ if issubclass(base, Mutex) for kind in base.about.survives if base.about.name
    )


def is_time(value: object) -> bool:
    """Of an option's default: nothing but a time in ns is as large."""
    return isinstance(value, int) and value >= SECOND


def bounds(latency: str) -> tuple[float, float]:
    """The shortest and the longest delay of a message, in seconds."""
    return uniform_bounds(latency) if latency.startswith("uniform:") else (float(latency), float(latency))


def settled(config: Config, faults: Faults) -> int:
    """By when every INIT and its ACK have arrived (RF: a node crashes only after its initialization), in ns."""
    longest = bounds(config.latency)[1] * (STRETCH if faults.reorder else 1)
    return faults.trust + int(2 * longest * SECOND) + 1


def shortest_time(latency: str, lossy: bool) -> int:
    """The least that an option which is a time may be: half of all round trips should be shorter."""
    return int(max(SHORTEST, (RESENDS if lossy else SLACK) * sum(bounds(latency))) * SECOND)


def promised(config: Config) -> bool:
    """Does the protocol say that it gets through this?"""
    protocol = find_protocol(config.protocol)
    known = claims(protocol)
    faults = parse_faults(config.faults, config.nodes)
    return (
        network_promised(config, faults, known)
        and crashes_promised(config, faults, known)
        and (not faults.resets or "reset" in known)
        and (not protocol.about.detectors or detectors_promised(config, faults))
        and times_promised(config, faults, protocol)
    )


def network_promised(config: Config, faults: Faults, known: frozenset[str]) -> bool:
    if "channel" in config.stack:
        carried = True
    else:
        lossy = faults.loss > 0 or bool(faults.partitions)
        carried = (not lossy or "loss" in known) and (not faults.dup or "duplication" in known)
    return carried and all(end < FOR_EVER for _, _, _, end in faults.partitions)


def crashes_promised(config: Config, faults: Faults, known: frozenset[str]) -> bool:
    victims = {node for node, _ in faults.crashes}
    if faults.random_crashes or len(victims) >= config.nodes:
        return False
    return not victims or "crash" in known or ("crash of a client" in known and 0 not in victims)


def detectors_promised(config: Config, faults: Faults) -> bool:
    """No crash before the start is over, which has no end that is known where messages are lost."""
    if not faults.crashes:
        return True
    early = min(at for _, at in faults.crashes) < settled(config, faults)
    return not early and not faults.loss and not faults.partitions


def times_promised(config: Config, faults: Faults, protocol: type[Mutex]) -> bool:
    """A lease that no answer can meet lets nobody in, and rightly so."""
    times = [config.options.get(name, default) for name, default in protocol.about.options.items() if is_time(default)]
    return all(time > shortest_time(config.latency, faults.loss > 0) for time in times)
