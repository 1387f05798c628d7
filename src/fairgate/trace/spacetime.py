"""Space-time diagrams of a journal in plain text: one column per node, one row per step, time running down.

A delivery is an arrow from the sender's column to the receiver's, in the row of its arrival. Messages that never
arrive are not drawn. A node's line shows whether it is idle, waiting or inside. If the columns do not fit, the steps
are shown as a list instead.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairgate.core.ids import NIL
from fairgate.core.units import SECOND
from fairgate.trace.journal import Step

MOST_COLUMNS = 12
LEAST_PITCH, MOST_PITCH = 4, 6  # between two columns
LEAST_TEXT = 30  # characters for the text beside the picture
HEADING_EVERY = 40  # rows
MILLI = 1_000_000

IDLE, WAITING, INSIDE, DOWN = "idle", "waiting", "inside", "down"


LINE = {IDLE: "│", WAITING: "┆", INSIDE: "┃", DOWN: " "}
CROSSED = {IDLE: "┼", WAITING: "┼", INSIDE: "╂", DOWN: "─"}  # an arrow crosses the line
RIGHTWARD = {IDLE: "├", WAITING: "├", INSIDE: "┠", DOWN: "╶"}  # an arrow starts at the line
LEFTWARD = {IDLE: "┤", WAITING: "┤", INSIDE: "┨", DOWN: "╴"}
SYMBOL = {  # by event, or by effect
    "start": "·",
    "acquire": "◇",
    "release": "○",
    "again": "◇",
    "cancel": "x",
    "timer": "t",
    "suspect": "!",
    "trust": "!",
    "dead": "!",
    "join": "j",
    "view": "v",
    "leave": "l",
    "load": "=",
    "crash": "✗",
    "reset": "R",
    "granted": "●",
    "lost": "✗",
}
ASCII = str.maketrans("│┆┃┼╂─├┠╶┤┨╴·◇○✗●◀▶↺…", "|:#++-|#-|#-.?oX*<>@~")


def spacetime(
    steps: Iterable[Step],
    nodes: Sequence[int] = (),
    first: int = 2,
    last: int | None = None,
    width: int = 100,
    ascii_only: bool = False,
) -> Iterator[str]:
    """The lines of the picture, for lines `first` to `last` of the journal.

    `nodes`: draw only these columns, in this order; by default, every node that is inside or takes part in a step.
    """
    states, rows = window(steps, first, last, set(nodes))
    columns = tuple(nodes) or tuple(sorted(states.inside().union(*(involved(step) for _, step in rows))))
    margin = Margin(rows)
    pitch = pitch_for(columns, width - margin.width)
    if pitch:
        drawn = picture(rows, states, Lanes(columns, pitch), margin)
    else:
        drawn = (margin.of(line, step) + listed(step) for line, step in rows)
    for text in drawn:
        yield cut(text, width).translate(ASCII if ascii_only else {})


def window(
    steps: Iterable[Step], first: int, last: int | None, nodes: set[int]
) -> tuple["States", list[tuple[int, Step]]]:
    """The states of the nodes before the steps to draw, and these steps with their lines in the journal."""
    states = States()
    rows = []
    for line, step in enumerate(steps, 2):
        if last is not None and line > last:
            break
        if line < first:
            states.follow(step)
        elif (not nodes or step.node in nodes) and not silent(step):
            rows.append((line, step))
    return states, rows


def picture(rows: Sequence[tuple[int, Step]], states: "States", lanes: "Lanes", margin: "Margin") -> Iterator[str]:
    yield "  ".join(f"{LINE[state]} {state}" for state in (IDLE, WAITING, INSIDE))
    for index, (line, step) in enumerate(rows):
        states.follow(step)
        if index % HEADING_EVERY == 0:
            yield " " * margin.width + lanes.heading()
        unseen = step.event == "message" and step.source not in lanes.place
        words = listed(step) if unseen else describe(step)
        yield margin.of(line, step) + lanes.row(step, states) + words


@dataclass
class States:
    """Which nodes are idle, waiting, inside or down, as far as the steps show."""

    of: dict[int, str] = field(default_factory=dict)

    def follow(self, step: Step) -> None:
        state = {
            "acquire": WAITING,
            "release": IDLE,
            "again": WAITING,
            "cancel": IDLE,
            "crash": DOWN,
            "reset": IDLE,
        }.get(step.event)
        for effect in step.effects:
            state = {"granted": INSIDE, "lost": IDLE}.get(effect[0], state)
        if state is not None:
            self.of[step.node] = state

    def __getitem__(self, node: int) -> str:
        return self.of.get(node, IDLE)

    def inside(self) -> set[int]:
        return {node for node, state in self.of.items() if state == INSIDE}


class Lanes:
    """The columns, and how one step is drawn across them."""

    def __init__(self, columns: Sequence[int], pitch: int) -> None:
        self.columns = columns
        self.pitch = pitch
        self.place = {node: pitch // 2 + index * pitch for index, node in enumerate(columns)}

    def heading(self) -> str:
        odd = self.pitch - 1 + self.pitch % 2  # an odd width has a middle, where the node's line runs
        return "".join(f"{node:^{odd}}".rjust(self.pitch) for node in self.columns)

    def row(self, step: Step, states: States) -> str:
        row = [" "] * (self.pitch * len(self.columns))
        for node, place in self.place.items():
            row[place] = LINE[states[node]]
        here = self.place[step.node]
        if step.event == "message":
            self.arrow(row, step, states)
        else:
            row[here] = SYMBOL[step.event]
        for effect in step.effects:
            row[here] = SYMBOL.get(effect[0], row[here])
        return "".join(row)

    def arrow(self, row: list[str], step: Step, states: States) -> None:
        here = self.place[step.node]
        if step.source == step.node:
            row[here] = "↺"
            return
        if step.source not in self.place:
            row[here - 1] = "▶"  # no shaft: the sender's column is not shown
            return
        there = self.place[step.source]
        low, high = min(here, there), max(here, there)
        row[low + 1 : high] = "─" * (high - low - 1)
        for node, place in self.place.items():
            if low < place < high:
                row[place] = CROSSED[states[node]]
        row[there] = (RIGHTWARD if there < here else LEFTWARD)[states[step.source]]
        if there < here:
            row[here - 1] = "▶"
        else:
            row[here + 1] = "◀"


class Margin:
    """The text left of a row: its line in the journal, and its time in seconds if it differs from the row above."""

    def __init__(self, rows: Sequence[tuple[int, Step]]) -> None:
        times = [step.now for _, step in rows]
        self.digits = 3 if all(time % MILLI == 0 for time in times) else 6
        self.line_width = max((len(str(line)) for line, _ in rows), default=0)
        self.time_width = max((len(self.seconds(time)) for time in times), default=0)
        self.width = self.line_width + self.time_width + 3
        self.before = -1

    def of(self, line: int, step: Step) -> str:
        time = "" if step.now == self.before else self.seconds(step.now)
        self.before = step.now
        return f"{line:>{self.line_width}} {time:>{self.time_width}}  "

    def seconds(self, time: int) -> str:
        fraction = f"{time % SECOND:09}"
        return f"{time // SECOND}.{fraction[: self.digits]}"


def pitch_for(columns: Sequence[int], room: int) -> int:
    """The distance between columns, or 0 if they do not fit."""
    if not columns or len(columns) > MOST_COLUMNS:
        return 0
    pitch = min(MOST_PITCH, (room - LEAST_TEXT) // len(columns))
    widest = max(len(str(node)) for node in columns)
    return pitch if pitch >= max(LEAST_PITCH, widest + 2) else 0


def cut(text: str, width: int) -> str:
    text = text.rstrip()
    return text if len(text) <= width else text[: width - 1] + "…"


def silent(step: Step) -> bool:
    """Is this a start without effects? It gets no row."""
    return step.event == "start" and not step.effects


def listed(step: Step) -> str:
    """A step as text that names the sender of a message."""
    words = describe(step)
    return f"{step.source} -> {step.node} {words}" if step.event == "message" else words


def involved(step: Step) -> tuple[int, ...]:
    return (step.node, step.source) if step.event == "message" else (step.node,)


WORDS = {
    "start": "{me} starts",
    "acquire": "{me} asks",
    "release": "{me} leaves",
    "again": "{me} leaves and asks again",
    "cancel": "{me} cancels",
    "message": "{message}",
    "timer": "{me} timer {a[0]}",
    "suspect": "{me} suspects {a[0]} ({a[1]})",
    "trust": "{me} trusts {a[0]} ({a[1]})",
    "dead": "{me} hears that {a[0]} crashed",
    "join": "{me} joins through {a[0]}",
    "view": "{me} has view {a[0]} of {a[1]}",
    "leave": "{me} says that it leaves",
    "load": "{me} is loaded with a state",
    "crash": "{me} crashes",
    "reset": "{me} restarts without its memory",
}


def describe(step: Step) -> str:
    """A step as text. Sent messages are left out: they are described when they arrive."""
    me = step.node
    message = short(step.message) if step.message else ""
    said = [WORDS[step.event].format(me=me, message=message, a=[*map(plain, step.arguments)])]
    for effect in step.effects:
        if effect[0] == "granted":
            said.append(entered(me, *effect[2:]))
        elif effect[0] == "lost":
            said.append(f"{me} loses its permit: {effect[2]}")
        elif effect[0] == "note":
            said.append(f"[{effect[1]}]")
    return "; ".join(said)


def entered(me: int, slot: int, fence: int) -> str:
    return f"{me} enters" if slot == NIL else f"{me} enters slot {slot} fence {fence}"


def short(message: Sequence[Any]) -> str:
    """A message's key as text: its tag without the protocol's prefix, and its fields."""
    tag, *fields = message
    return f"{tag.rpartition('.')[2]}({', '.join(map(plain, fields))})"


def plain(value: Any) -> str:
    """A field as text: a nested message in its short form, a tuple without spaces."""
    if not isinstance(value, tuple):
        return str(value)
    if value and isinstance(value[0], str) and "." in value[0]:
        return short(value)
    return f"({','.join(map(plain, value))})"
