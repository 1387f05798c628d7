"""Turns a configuration into the `fairgate sim` command line that runs it."""

import shlex
from collections.abc import Iterator
from typing import Any

from fairgate.cli.durations import UNITS
from fairgate.registry import OVERLAYS
from fairgate.sim.config import Config

DEFAULT = Config()


def command_line_of(config: Config) -> str:
    """`fairgate sim ...`, quoted for a shell."""
    return shlex.join(["fairgate", "sim", *sim_arguments(config)])


def sim_arguments(config: Config) -> list[str]:
    """Arguments of `fairgate sim`. The size of the run is always given, other options only if they differ."""
    words = [config.protocol]
    for name in ("nodes", "k", "requests", "rate", "cs", "latency", "seed"):
        words += [f"--{name}", plain(getattr(config, name))]
    return [*words, *unusual_arguments(config)]


def unusual_arguments(config: Config) -> Iterator[str]:
    if config.workload != DEFAULT.workload:
        yield from ("--workload", config.workload)
    if config.workload == "rounds":
        yield from ("--askers", plain(config.askers))
    if config.exponential_cs:
        yield "--exponential-cs"
    if config.give_up:
        yield from ("--give-up", f"{plain(config.give_up)}:{plain(config.give_up_after)}")
    for name, value in config.options.items():
        yield from ("--option", f"{name}={option(value)}")
    for layer in config.stack:
        if layer in OVERLAYS:
            yield from ("--overlay", layer.removeprefix("settled_"))
    if "channel" in config.stack:
        yield "--channel"
    if config.faults:
        yield from ("--faults", config.faults)


def plain(value: Any) -> str:
    """The shortest text that parses to exactly this value."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def option(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value >= UNITS["ms"] and value % UNITS["ms"] == 0:
        return f"{value // UNITS['ms']}ms"
    return str(value)
