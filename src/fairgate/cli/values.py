"""Parsers for option values of the command line. Each raises BadInput with one clear line for a bad value."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fairgate.arguments import SECOND
from fairgate.cli.durations import nanoseconds
from fairgate.core.mutex import Mutex
from fairgate.errors import BadInput
from fairgate.known_options import known_options

LEAST_TIME = 1_000_000  # ns: an option with a smaller default, except 0, is a count or a percentage
BOOLS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def read_options(texts: Sequence[str], protocol: type[Mutex], stack: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE texts. Raises BadInput if neither the protocol nor a layer of `stack` has such an option."""
    known = known_options(protocol, stack)
    read: dict[str, Any] = {}
    for text in texts:
        name, equals, word = text.partition("=")
        if not equals or name not in known:
            raise BadInput(f"cannot use --option {text}: {describe_options(protocol.about.name, known)}")
        read[name] = read_option(name, word, known[name])
    return read


def read_option(name: str, word: str, known: Any) -> Any:
    """A value of the same type as its default. bool is tested before int because it is a subclass of int."""
    if isinstance(known, tuple):
        if word in known:
            return word
    elif isinstance(known, bool):
        if word.lower() in BOOLS:
            return BOOLS[word.lower()]
    elif isinstance(known, int):
        value = whole_number(word, is_time=not 0 < known < LEAST_TIME)
        if value is not None:
            return value
    else:
        return word
    raise BadInput(f"cannot use --option {name}={word}: write {describe_option(name, known)}")


def whole_number(word: str, is_time: bool) -> int | None:
    """An integer such as `5`, or of a time also `10s` or `2.5ms`, in nanoseconds; None if it is neither."""
    if re.fullmatch(r"-?\d{1,20}", word):  # more digits than any option has, which int() may refuse
        return int(word)
    return nanoseconds(word) if is_time else None


def describe_options(protocol: str, known: Mapping[str, Any]) -> str:
    if not known:
        return f"{protocol} has no options"
    return (
        f"the options of {protocol} are {'; '.join(describe_option(name, default) for name, default in known.items())}"
    )


def describe_option(name: str, known: Any) -> str:
    """`tree=a|b` with the default first, or `reentry=8` with the default value."""
    if isinstance(known, tuple):
        return f"{name}={'|'.join(map(str, known))}"
    if isinstance(known, bool):
        return f"{name}={'true|false' if known else 'false|true'}"
    if isinstance(known, int) and known >= SECOND:  # only times in ns are this large
        return f"{name}={known / SECOND:g}s"
    return f"{name}={known}"


def read_give_up(text: str) -> tuple[float, float]:
    """Parse SHARE:SECONDS. The simulator checks the ranges."""
    share, colon, patience = text.partition(":")
    try:
        if colon:
            return finite("--give-up", float(share)), finite("--give-up", float(patience))
    except ValueError:
        pass
    raise BadInput(f"cannot read --give-up {text}: write it as SHARE:SECONDS, such as 0.2:30")


def finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise BadInput(f"{name} must be a number, not {value}")
    return value


def read_nodes(text: str, members: Sequence[int] | None) -> tuple[int, ...]:
    """Parse `1,2,5` or `0-4,9`. Raises BadInput for a node that is not in `members`, unless that is None (unknown)."""
    nodes: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise BadInput(f"cannot read --nodes {text}: write it as 1,2,5 or 0-4")
        nodes += range(int(first), int(last or first) + 1)
    strangers = [] if members is None else [node for node in nodes if node not in members]
    if members and strangers:
        raise BadInput(f"there is no node {strangers[0]}: nodes are {members[0]}..{members[-1]}")
    return tuple(dict.fromkeys(nodes))
