"""`fairgate replay`: replay a journal, compare it step by step, and draw it."""

from collections.abc import Iterator
from itertools import chain
from typing import Annotated

import typer

from fairgate.cli.screen import can_draw, counted, line_width
from fairgate.cli.values import read_nodes
from fairgate.core.layers import MakeNode
from fairgate.core.node import Node
from fairgate.core.outbox import Outbox
from fairgate.core.setup import Setup
from fairgate.errors import BadInput
from fairgate.registry import make_node
from fairgate.trace.journal import Header, JournalError, Step, read
from fairgate.trace.replay import ReplayError, replay
from fairgate.trace.short_ids import ShortIds
from fairgate.trace.spacetime import spacetime

LIVE = "net"  # journals of this driver start without members: nodes appear as steps name them
LONGEST_DIFFERENCE = 300  # characters: a state key can be very long


def replay_command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Journal, as written by --journal of sim, check, swarm, run or peer.")
    ],
    nodes: Annotated[
        str | None, typer.Option(help="Draw only these nodes, in this order, such as 1,2,5 or 0-4.", metavar="LIST")
    ] = None,
    first: Annotated[int, typer.Option("--from", help="First line of the journal to draw.", metavar="LINE")] = 2,
    last: Annotated[
        int | None,
        typer.Option("--to", help="Last line of the journal to draw.", metavar="LINE", show_default="the last"),
    ] = None,
    ascii_only: Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only.")] = False,
    check_only: Annotated[bool, typer.Option("--check-only", help="Only compare, do not draw.")] = False,
) -> None:
    """Replay a journal, compare every step with the recorded one, and draw it.

    The drawing has one column per node and one row per step. The exit status
    is 1 if a step differs. All steps are compared, also those not drawn.

    [bold]Record and replay a small run[/bold]

        fairgate sim fair_k --nodes 5 --requests 2 --journal run.ndjson

        fairgate replay run.ndjson

    [bold]Draw part of a long run[/bold]

        fairgate replay run.ndjson --nodes 0,3,4 --from 20 --to 60
    """
    if first < 1 or (last is not None and last < first):
        end = "the last" if last is None else last
        raise BadInput(f"--from and --to are line numbers of the journal, from 1 and in order, not {first} and {end}")
    header = read_header(file)
    setup = setup_of(file, header)
    live = header.driver == LIVE
    columns = read_nodes(nodes, None if live else setup.members) if nodes is not None else ()
    steps = CountedSteps(replayed(file, header))
    if not check_only:
        named = ShortIds(steps) if live else steps
        picture = spacetime(named, columns, first, last, line_width(), ascii_only or not can_draw())
        top = next(picture, "")  # replays all steps to be drawn, so that an error is not printed below a title
        for line in chain((title(header, setup), top), picture):
            print(line)
        if isinstance(named, ShortIds):
            print("\n".join(named.legend()))
    for _ in steps:  # compare the steps that were not drawn
        pass
    print(f"{counted(steps.count, 'step')} replayed: all came out the same")


class CountedSteps:
    """An iterator over steps that counts them, and can be resumed by another loop."""

    def __init__(self, steps: Iterator[Step]) -> None:
        self.steps = steps
        self.count = 0

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step = next(self.steps)
        self.count += 1
        return step


def read_header(file: str) -> Header:
    try:
        header, _ = read(file)
    except OSError as wrong:
        raise BadInput(f"cannot read the journal {file}: {wrong.strerror}") from wrong
    return header


def setup_of(file: str, header: Header) -> Setup:
    try:
        return Setup.of(header.setup)
    except (KeyError, TypeError, ValueError, AttributeError) as wrong:
        raise JournalError(file, 1, f"broken header: its setup is invalid ({wrong})") from wrong


def replayed(file: str, header: Header) -> Iterator[Step]:
    """Replay every step. Raises Difference, which names the file, at the first one that does not match."""
    try:
        make = make_node(header.protocol, header.stack)
    except BadInput as wrong:
        raise JournalError(file, 1, str(wrong)) from wrong
    try:
        yield from replay(file, careful(file, make))
    except ReplayError as wrong:
        raise Difference(file, wrong) from wrong


def careful(file: str, make: MakeNode) -> MakeNode:
    """Turns an error in a node's constructor into BadInput: the header of the journal does not fit its steps."""

    def made(me: int, setup: Setup, out: Outbox) -> Node:
        try:
            return make(me, setup, out)
        except Exception as wrong:
            raise BadInput(f"{file}: cannot make node {me} of this journal: {wrong}") from wrong

    return made


class Difference(ReplayError):
    """A ReplayError whose text is one line and names the file."""

    def __init__(self, file: str, wrong: ReplayError) -> None:
        super().__init__(wrong.line, wrong.node, wrong.what, wrong.expected, wrong.came)
        expected, came = cut(wrong.expected), cut(wrong.came)
        self.text = f"{file}:{wrong.line}: node {wrong.node}, {wrong.what}: expected {expected}, got {came}"

    def __str__(self) -> str:
        return self.text


def cut(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST_DIFFERENCE else text[: LONGEST_DIFFERENCE - 3] + "..."


def title(header: Header, setup: Setup) -> str:
    layers = "".join(f" over {layer}" for layer in header.stack)
    size = "one peer's nodes" if header.driver == LIVE else counted(setup.n, "node")
    seed = "" if header.seed is None else f", seed {header.seed}"
    return f"{header.protocol}{layers}: {size}, k = {setup.k}{seed}, from {header.driver}"
