"""The options of `fairgate run` that only mean something in a cluster."""

from collections.abc import Callable

from fairgate.arguments import MANY, ONE
from fairgate.cli.durations import Duration, seconds
from fairgate.cli.network.options import JOIN_OPTIONS, OBSERVE_OPTIONS, OPTIONS, flag
from fairgate.cli.run.options import Option, whole

READERS: dict[type, Callable[[str], object]] = {str: str, int: whole(0, 65535), Duration: seconds, list: str}


def network_option(name: str) -> Option:
    option = OPTIONS[name]
    help = option.help[:1].lower() + option.help[1:].rstrip(".")
    if option.kind is bool:
        return Option(flag(name), name, "", help)
    return Option(flag(name), name, option.metavar, help, READERS[option.kind], repeated=option.kind is list)


CLUSTER_OPTIONS = [
    *[network_option(name) for name in JOIN_OPTIONS],
    Option("--protocol", "protocol", "NAME",
           "algorithm that orders the entries; `fairgate protocols` lists them"
           f" (default: {ONE} if K is 1, else {MANY})"),
    *[network_option(name) for name in OBSERVE_OPTIONS],
]  # fmt: skip
