"""Walks a path of the checker again with real nodes, and records it as journal steps and as scenario commands."""

import io
from collections.abc import Iterator
from typing import Any

from fairgate.check.model import Action, Model
from fairgate.core.message import decode
from fairgate.scenario.commands import seconds
from fairgate.scenario.manual import Flight, Violation
from fairgate.scenario.recorded import EVENTS, RecordedNetwork
from fairgate.trace.journal import JournalWriter, RecordingOutbox, Step


class StepsInMemory(JournalWriter):
    """Keeps the steps in memory: most counterexamples are only displayed, never written to a file."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.steps: list[Step] = []

    def step(self, step: Step) -> None:
        self.steps.append(step)


class Reenactment(RecordedNetwork):
    """Walks a path from the model's first state when it is made. Its attributes then describe what happened."""

    def __init__(self, model: Model, path: tuple[Action, ...]) -> None:
        self.model = model
        self.kept = StepsInMemory()
        self.script: Iterator[int] = iter(())
        self.choices: list[tuple[int, int]] = []  # the number of options, and the one chosen
        self.commands: list[list[str]] = []  # one list per action
        self.faults: list[str] = []  # lost and duplicated messages: a journal records nodes, so it does not show them
        self.refused: Step | None = None  # the last step, if the node raised an error in it: it cannot be replayed
        self.unsaid = ""  # why no scenario can express the path, or ""
        self.readings = dict.fromkeys(model.setup.members, 0)  # per node
        super().__init__(self.kept, model.steps.make, model.setup, model.slots, self.choose, census=False)
        if model.listens:
            self.initialise()
        elif model.starts_quiet:
            self.deliver_all()
        for action in model.opened:
            self.take(action)
        self.opening = len(self.kept.steps)  # the number of steps before the first state
        for action in path[:-1]:
            self.take(action)
        try:
            for action in path[-1:]:
                self.take(action)
        except Exception:
            pass  # the violation that the checker found: a breach that was recorded, or an error that the node raised

    def initialise(self) -> None:
        """Do what Model.initialised does, in another order; RuntimeError if the order makes a difference."""
        for command in initialising(self.setup.members):
            me, peer = map(int, command.split()[1:])
            self.trust(me, peer)
        self.deliver_all()
        first = self.model.first()
        keys = [self.model.things[number][1] for number in first[: self.model.n]]
        if keys != [node.key() for node in self.nodes.values()]:
            raise RuntimeError("the initialization depends on the order of deliveries: this path cannot be shown")

    def choose(self, n: int) -> int:
        self.choices.append((n, next(self.script, 0)))
        return self.choices[-1][1]

    def step(self, me: int, call: str, *arguments: Any) -> None:
        self.now = self.readings[me]
        try:
            super().step(me, call, *arguments)
        except Violation:
            raise
        except Exception:
            self.refused = self.recorders[me].taken(self.now, self.nodes[me], EVENTS[call], *arguments)
            raise

    # One action.

    def take(self, action: Action) -> None:
        what, me, argument, choices = action
        self.script = iter(choices)
        said: list[str] = []
        self.commands.append(said)
        if what in {"message", "lose", "duplicate"}:
            self.take_message(what, argument, said)
        elif what in {"suspect", "trust"}:
            peer, detector = argument
            said.append(f"{what} {me} {peer} {detector}")
            getattr(self, what)(me, peer, detector)
        elif what == "timer":
            said.append(f"fire {me} {argument}")
            self.fire(me, argument)
        elif what == "view":
            self.unsaid = "a scenario has no views"
            self.step(me, "on_view", *argument)
        elif what == "dead":
            self.unsaid = "a scenario does not tell nodes of crashes"
            self.step(me, "on_crash", argument)
        elif what in {"join", "exclude"}:
            pass  # the next view is with the node, or without it; nodes learn of it later
        elif what == "expire":
            self.crash(me)  # it may be down already
        elif what == "tick":
            self.tick([me] if me in self.nodes else list(self.nodes), said)
        else:
            said.append(f"{what} {me}")
            if what in {"acquire", "again"}:
                self.requests = argument - 1  # the checker numbers requests per node, and the number is in the key
            getattr(self, what)(me)

    def take_message(self, what: str, number: int, said: list[str]) -> None:
        src, dst, fields = self.model.things[number]
        wanted = Flight(src, dst, decode(fields))
        which = f"{src}->{dst} {wanted.msg.tag}"
        while (place := self.first_like(wanted)) != self.flight.index(wanted):
            said += [f"duplicate {which}  # with the next line: moves this message behind the others", f"drop {which}"]
            super().duplicate(place)
            super().drop(place)
        if what == "message":
            said.append(f"deliver {which}")
            self.deliver(place)
        elif what == "lose":
            said.append(f"drop {which}")
            self.drop(place)
        else:
            said.append(f"duplicate {which}")
            self.duplicate(place)

    def first_like(self, wanted: Flight) -> int:
        """The index of the message that a scenario command picks: the oldest of its kind between the two nodes."""
        alike = (wanted.src, wanted.dst, wanted.msg.tag)
        return next(i for i, one in enumerate(self.flight) if (one.src, one.dst, one.msg.tag) == alike)

    def tick(self, movers: list[int], said: list[str]) -> None:
        """Advance clocks. A timer that is due then fires next in the path; its `fire` advances a scenario's clock."""
        for me in movers:
            self.readings[me] += self.model.ticks[me]
        late = [self.readings[me] - due for (me, _), due in self.timers.items() if due <= self.readings[me]]
        if self.model.case.skew or self.model.case.rates:
            self.unsaid = "a scenario has only one clock"
        elif any(late):
            self.unsaid = "a timer expires between two ticks"
        elif not late:
            said.append(f"advance {seconds(self.model.case.tick)}")

    # Faults that a plain RecordedNetwork does not record or does not have.

    def drop(self, index: int = 0) -> None:
        self.befell(self.flight[index], "is lost")
        super().drop(index)

    def duplicate(self, index: int = 0) -> None:
        self.befell(self.flight[index], "is duplicated")
        super().duplicate(index)

    def befell(self, flight: Flight, what: str) -> None:
        line = len(self.kept.steps) + 1  # in the journal: its first line is the header
        self.faults.append(f"after line {line}: {flight.src} -> {flight.dst} {flight.msg} {what}")

    def reset(self, me: int) -> None:
        """The node loses its memory, including its request, and restarts at once."""
        self.waiting.pop(me, None)
        permit = self.inside.pop(me, None)
        if permit is not None:
            self.occupancy.leave(me, permit.slot)
        for timer in [timer for timer in self.timers if timer[0] == me]:
            del self.timers[timer]
        self.unsaid = "a scenario has no resets"
        self.recorders[me] = RecordingOutbox(self.outboxes[me])
        self.nodes[me] = self.model.steps.make(me, self.setup, self.recorders[me])
        self.now = self.nodes[me].now = self.readings[me]
        self.journal.step(Step(self.now, me, "reset", key=self.nodes[me].key()))
        self.step(me, "on_start")


def initialising(members: tuple[int, ...]) -> list[str]:
    """Scenario commands by which every node comes to trust every other."""
    return [f"trust {me} {peer}" for me in members for peer in members if peer != me]
