"""The options of `fairgate run`, and their parser.

argparse would take a quarter of the time that `fairgate run x -- true` takes, so the few options are parsed here.
help.py makes the help from the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fairgate.arguments import MOST_K, SHORTEST_LEASE
from fairgate.cli.durations import seconds
from fairgate.cli.exits import WRONG
from fairgate.cli.gate_names import refuse_number
from fairgate.command.supervisor import KILL, TERM, WARN
from fairgate.errors import BadInput

GRACE = 5.0  # seconds
HELP = ("-h", "--help")
SEE = "(see fairgate run --help)"


# How a value is read. Each raises ValueError with what the value must be.


def whole(least: int, most: int) -> Callable[[str], int]:
    def read(word: str) -> int:
        try:
            value = int(word)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return value

    return read


def action(word: str) -> str:
    if word not in (TERM, KILL, WARN):
        raise ValueError(f"{TERM}, {KILL} or {WARN}")
    return word


class Option:
    """An option: its names, the field of Options that it sets, and how its value is read. Flags have no metavar."""

    def __init__(
        self,
        names: str,
        field: str,
        metavar: str,
        help: str,
        read: Callable[[str], object] = str,
        repeated: bool = False,
    ) -> None:
        self.names = names.split()
        self.field = field
        self.metavar = metavar
        self.help = help
        self.read = read
        self.repeated = repeated

    def value(self, word: str) -> object:
        try:
            return self.read(word)
        except ValueError as wanted:
            raise BadInput(f"{self.names[-1]} must be {wanted}, not {word!r} {SEE}") from None


OPTIONS = [
    Option("-k", "k", "K",
           f"number of commands that may be inside at once, 1 to {MOST_K} (default: 1)", whole(1, MOST_K)),
    Option("--permits", "permits", "N",
           "number of slots that COMMAND takes at once (default: 1)", whole(1, MOST_K)),
    Option("-n --nonblock", "now", "",
           "do not wait: fail at once if no slot is free (see -E)"),
    Option("-w --wait", "wait", "DURATION",
           "fail if no slot becomes free within DURATION (see -E); 0 is the same as -n (default: wait forever)",
           seconds),
    Option("-E --conflict-exit-code", "code", "CODE",
           "exit status if -n or -w fails, 0 to 255 (default: 1)", whole(0, 255)),
    Option("-o --close", "close", "",
           "free the slot when COMMAND ends, even if processes that it started are still running"),
    Option("--lease", "lease", "DURATION",
           "longest time that COMMAND may be inside. It gets SIGTERM before the lease ends: see --grace and --on-lost"
           " (default: no limit)", seconds),
    Option("--grace", "grace", "DURATION",
           "time from SIGTERM to SIGKILL when COMMAND is terminated; it is part of the lease"
           f" (default: {GRACE:g}, or half the lease if that is less)", seconds),
    Option("--on-lost", "on_lost", f"{TERM}|{KILL}|{WARN}",
           "what happens to COMMAND's process group when its lease is about to end, or its permit is lost (for example"
           " by `fairgate break`). term: SIGTERM, and SIGKILL after --grace; kill: SIGKILL; warn: only a message,"
           " and COMMAND goes on, so the resource itself must refuse old fences (default: term)", action),
    Option("--no-nested", "no_nested", "",
           "fail if COMMAND would run inside another `fairgate run` of the same gate. By default it then runs at once,"
           " in the slot of the other one"),
]  # fmt: skip


class Options:
    """The values of the options."""

    def __init__(self) -> None:
        self.help = False
        self.gate = ""
        self.command: list[str] = []
        self.k = 1
        self.permits = 1
        self.now = False
        self.wait: float | None = None
        self.code = WRONG
        self.close = False
        self.lease: float | None = None
        self.grace: float | None = None
        self.on_lost = TERM
        self.no_nested = False
        self.network: dict[str, object] = {}  # those of cluster_options.py that were given

    def set(self, option: Option, value: object) -> None:
        fields = self.__dict__ if option.field in self.__dict__ else self.network
        if option.repeated:
            earlier = fields.get(option.field, [])
            assert isinstance(earlier, list)
            value = [*earlier, value]
        fields[option.field] = value

    def check(self) -> None:
        """Raises BadInput if options contradict each other."""
        if self.now and self.wait is not None:
            raise BadInput(f"-n does not wait and -w does: use only one of them {SEE}")
        if not self.gate:
            raise BadInput(f"no gate given: write its name, as in fairgate run GATE -- COMMAND {SEE}")
        if not self.network:  # names in a cluster are no files
            refuse_number(self.gate)
        if not self.command:
            raise BadInput(f"no command given: write it after --, as in fairgate run GATE -- COMMAND {SEE}")
        if self.permits > self.k:
            raise BadInput(f"--permits {self.permits} is more than the gate has: add -k {self.permits} or more")
        if self.lease is not None and self.lease < SHORTEST_LEASE:
            raise BadInput(f"--lease must be at least {SHORTEST_LEASE} seconds, not {self.lease:g}")
        if self.lease is not None and self.grace is not None and self.grace > self.lease:
            raise BadInput(f"--grace {self.grace:g} must not be longer than --lease {self.lease:g}")
        self.now = self.now or self.wait == 0

    def grace_seconds(self, left: float | None) -> float:
        """`left` is how long the lease still lasts. In a nested command it may be shorter than its own lease."""
        if self.grace is not None:
            return self.grace
        return GRACE if left is None else min(GRACE, left / 2)


def read_options(arguments: Sequence[str]) -> Options:
    """Parse and check the command line. Raises BadInput if an option or a combination of options is invalid."""
    split = list(arguments).index("--") if "--" in arguments else len(arguments)
    options = Options()
    options.command = list(arguments[split + 1 :])
    unknown = []
    words = iter(arguments[:split])
    for word in words:
        if word in HELP:
            options.help = True
            return options
        if word.startswith("-") and word != "-":
            read_word(options, word, words)
        elif not options.gate:
            options.gate = word
        else:
            unknown.append(word)
    if unknown:
        hint = "" if "--" in arguments else ": write the command after --, as in fairgate run GATE -- COMMAND"
        raise BadInput(f"unrecognized arguments: {' '.join(unknown)}{hint} {SEE}")
    options.check()
    return options


def read_word(options: Options, word: str, words: Iterator[str]) -> None:
    """One word with options: --name, --name VALUE, --name=VALUE, -x, -xVALUE, -x VALUE, or several flags as in -no."""
    name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
    option = find(name, word)
    if option.metavar:
        if not equals and not value:
            value = next(words, "")
            if not value:
                raise BadInput(f"{name} needs a value {SEE}")
        options.set(option, option.value(value))
        return
    if equals:
        raise BadInput(f"{name} takes no value {SEE}")
    options.set(option, True)
    if value:
        read_word(options, f"-{value}", words)


def find(name: str, word: str) -> Option:
    for option in OPTIONS:
        if name in option.names:
            return option
    from fairgate.cli.run.cluster_options import CLUSTER_OPTIONS  # noqa: PLC0415 (these imports are slow)

    for option in CLUSTER_OPTIONS:
        if name in option.names:
            return option
    raise BadInput(f"unrecognized arguments: {word} {SEE}")
