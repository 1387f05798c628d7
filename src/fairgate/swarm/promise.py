"""What a protocol promises to survive, and whether a simulation stays within that.

A failing run means something only if its faults are among those that the protocol claims to survive. The swarm draws
configurations within these bounds, and shrinking stays within them. Otherwise every failure would shrink to a crash
that the protocol never promised to survive.
"""

from fairgate.core.clock import MILLION
from fairgate.core.kbr import Routed, replica_keys
from fairgate.core.mutex import Mutex
from fairgate.core.setup import Setup
from fairgate.core.units import NEVER, SECOND
from fairgate.overlay.ring import Ring
from fairgate.registry import find_protocol
from fairgate.sim.build import uniform_bounds
from fairgate.sim.config import Config
from fairgate.sim.faults import STRETCH, Faults, parse_faults

SLACK = 1.1  # shortest time a protocol may wait for two messages, as a multiple of their average latency
RESENDS = 10  # the same where messages may be lost, and arrive with the second or third resend
LONGEST = 10**15  # ns, eleven days
SHORTEST = 0.3  # seconds; if messages take no time, a shorter lease would cause nothing but renewals


def claims(protocol: type[Mutex]) -> frozenset[str]:
    """The faults it must survive. A literal version with holes is a subclass, and held to its base's promise.

    A reset that is survived by enough replicas is a reset here: `keeps_quorums` counts them.
    """
    bases = [base for base in protocol.__mro__ if issubclass(base, Mutex) and base.about.name]
    return frozenset(kind.partition(" of up to")[0] for base in bases for kind in base.about.survives)


def with_leases(known: frozenset[str]) -> frozenset[str]:
    """The faults survived if the option `lease` is set."""
    return frozenset(kind.removesuffix(" with leases") for kind in known)


def is_time(value: object) -> bool:
    """Is this value of an option a time in ns? Counts are smaller; ranges to draw random numbers from are larger."""
    return isinstance(value, int) and SECOND <= value <= LONGEST


def longest_time(config: Config) -> int:
    options = {**find_protocol(config.protocol).about.options, **config.options}
    return max([value for value in options.values() if is_time(value)], default=0)


def bounds(latency: str) -> tuple[float, float]:
    """The minimum and maximum latency of a message, in seconds."""
    latency = latency.removeprefix("pairs:")
    return uniform_bounds(latency) if latency.startswith("uniform:") else (float(latency), float(latency))


def initialised_by(config: Config, faults: Faults) -> int:
    """The time in ns by which every INIT and its ACK have arrived. In RF a node crashes only after initialization."""
    longest = bounds(config.latency)[1] * (STRETCH if faults.reorder else 1)
    return faults.trust + int(2 * longest * SECOND) + 1


def shortest_time(latency: str, lossy: bool) -> int:
    """The least value in ns of an option that is a time: half of all round trips should be shorter."""
    return int(max(SHORTEST, (RESENDS if lossy else SLACK) * sum(bounds(latency))) * SECOND)


def promised(config: Config) -> bool:
    """Does the protocol promise to survive this configuration?"""
    protocol = find_protocol(config.protocol)
    known = claims(protocol)
    if config.options.get("lease"):
        known = with_leases(known)
    faults = parse_faults(config.faults, config.nodes)
    return (
        network_promised(config, faults, known)
        and crashes_promised(config, faults, known)
        and resets_promised(config, faults, known)
        and (not protocol.about.detectors or detectors_promised(config, faults))
        and times_promised(config, faults, protocol)
        and faults.drift * MILLION <= allowed_drift(config)
        and (not issubclass(protocol, Routed) or keeps_quorums(config, faults))
    )


def allowed_drift(config: Config) -> int:
    """By how much clocks may differ, in parts per million; 0 if the protocol says nothing about it."""
    drift: int = config.options.get("drift", find_protocol(config.protocol).about.options.get("drift", 0))
    return drift


def network_promised(config: Config, faults: Faults, known: frozenset[str]) -> bool:
    if "channel" in config.stack:
        carried = True
    else:
        lossy = faults.loss > 0 or bool(faults.partitions)
        carried = (not lossy or "loss" in known) and (not faults.dup or "duplication" in known)
    return carried and all(end < NEVER for _, _, _, end in faults.partitions)


def crashes_promised(config: Config, faults: Faults, known: frozenset[str]) -> bool:
    victims = {node for node, _ in faults.crashes}
    if faults.random_crashes or len(victims) >= config.nodes:
        return False
    return not victims or "crash" in known or ("crash of a client" in known and 0 not in victims)


def resets_promised(config: Config, faults: Faults, known: frozenset[str]) -> bool:
    """No reset over a channel: it numbers messages per identity, and ignores a node whose numbers start again."""
    return not faults.resets or ("reset" in known and "channel" not in config.stack)


def detectors_promised(config: Config, faults: Faults) -> bool:
    """No crash before the initialization is over. If messages are lost, nobody can tell when that is."""
    if not faults.crashes:
        return True
    early = min(at for _, at in faults.crashes) < initialised_by(config, faults)
    return not early and not faults.loss and not faults.partitions


def times_promised(config: Config, faults: Faults, protocol: type[Mutex]) -> bool:
    """With a lease shorter than any round trip no node can enter, and that is not a failure."""
    times = [config.options.get(name, default) for name, default in protocol.about.options.items() if is_time(default)]
    return all(time > shortest_time(config.latency, faults.loss > 0) for time in times)


def everybody_comes_in(config: Config) -> bool:
    """Must every request be granted? Not with voting in zones on a DHT when messages are lost.

    There every member has a small vote, and many votes are needed at once.
    """
    return not (is_zoned(config) and parse_faults(config.faults, config.nodes).loss)


def is_zoned(config: Config) -> bool:
    """Does every member vote with its zone?"""
    return getattr(find_protocol(config.protocol), "zoned", False)


def keeps_quorums(config: Config, faults: Faults) -> bool:
    """On a DHT: are enough replicas left for a node to enter, and do too few forget their votes to let too many in?

    Crashes and resets need an overlay in which every node knows every other. A settled overlay does not route around
    a node that is down.
    """
    failed = [*[node for node, _ in faults.crashes], *[node for node, _, _ in faults.resets]]
    if not failed:
        return True
    settled_ways = any(layer.startswith("settled") for layer in config.stack)
    if settled_ways:
        return False
    if is_zoned(config):
        return True  # a neighbour inherits the zone of a node that failed, and votes with it after a lease
    setup = Setup(tuple(range(config.nodes)), config.k, options=config.options)
    ring = Ring(setup.members)
    owners = [ring.successor(key) for key in replica_keys(setup)]
    n = len(owners)
    m = config.options.get("quorum") or n // (config.k + 1) + 1
    down = sum(owners.count(node) for node, _ in faults.crashes)
    forgotten = sum(owners.count(node) for node, _, _ in faults.resets)
    return down <= n - m and forgotten < (config.k + 1) * m - n
