"""Orders that papers promise, read off the steps of a run. Neither safety nor liveness: no run ends by them."""

from collections import Counter
from collections.abc import Iterable

from fairgate.protocols.fair_k import TokenLocations
from fairgate.trace.journal import Step


def places_early(steps: Iterable[Step]) -> list[int]:
    """Fair-k: of every entry by a queue, past how many it came who were coordinator before it.

    Who takes its own idle token again was no coordinator, and is left out.
    """
    queued: list[int] = []
    early = []
    for step in steps:
        for effect in step.effects:
            if effect[0] == "send" and effect[2][0] == TokenLocations.tag:
                queued.append(effect[1])
            elif came_by_queue(step, effect):
                early.append(queued.index(step.node))
                queued.remove(step.node)
    return early


def most_turns_past(steps: Iterable[Step]) -> int:
    """The most times that one node came in by a queue while another one waited for the same turn.

    First come first served leaves two: a request that was there before, and one that was under way at the same time.
    """
    past: dict[int, Counter[int]] = {}  # who waits -> how often the others came in meanwhile
    most = 0
    for step in steps:
        if step.event == "acquire":
            past[step.node] = Counter()
        for effect in step.effects:
            if effect[0] == "granted":
                del past[step.node]
            if came_by_queue(step, effect):
                for others in past.values():
                    others[step.node] += 1
                    most = max(most, others[step.node])
    return most


def came_by_queue(step: Step, effect: tuple[object, ...]) -> bool:
    return effect[0] == "granted" and step.event != "acquire"
