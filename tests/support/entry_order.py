"""Orders that papers promise, read off the steps of a run. Neither safety nor liveness: no run ends by them."""

from collections import Counter
from collections.abc import Iterable

from fairgate.protocols.fair_k import Child, Token, TokenLocations
from fairgate.protocols.fair_k_bounded import NumberedChild
from fairgate.trace.journal import Step

CHILD_TAGS = (Child.tag, NumberedChild.tag)  # of both the last field is who comes next


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


def most_entries_past(steps: Iterable[Step]) -> int:
    """Fair-k, bounded or not: the most times that one node came in while another one had a turn that had not come.

    A turn is given when Child is sent for it, and has come with the token. That of a cancelled request counts as well.
    """
    past: dict[int, Counter[int]] = {}  # who has a turn -> how often the others came in since
    most = 0
    for step in steps:
        if turn_came(step):
            past.pop(step.node, None)
        for effect in step.effects:
            if effect[0] == "send" and effect[2][0] in CHILD_TAGS:
                past[effect[2][-1]] = Counter()
            elif effect[0] == "granted":
                for others in past.values():
                    others[step.node] += 1
                    most = max(most, others[step.node])
    return most


def turn_came(step: Step) -> bool:
    """By a token, or because its own idle token is the one before it."""
    if step.event != "message":
        return False
    kind = str(step.message[0])
    return kind == Token.tag or (kind == NumberedChild.tag and int(step.message[-1]) == step.node)
