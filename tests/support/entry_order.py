"""Orders of entry that papers promise, measured from the steps of a run.

They are neither safety nor liveness, so runs do not check them.
"""

from collections import Counter
from collections.abc import Iterable

from fairgate.lab.coordinator_order import came_by_queue
from fairgate.protocols.fair_k import Child, Token
from fairgate.protocols.fair_k_bounded import NumberedChild
from fairgate.trace.journal import Step

CHILD_TAGS = (Child.tag, NumberedChild.tag)  # the last field of both is the node that comes next


def most_turns_past(steps: Iterable[Step]) -> int:
    """The most times that one node entered through a queue while another one waited for the same request.

    First come first served allows two: a request that was queued before, and one that was in flight at the same time.
    """
    past: dict[int, Counter[int]] = {}  # waiting node -> how often each other node has entered meanwhile
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


def most_entries_past(steps: Iterable[Step]) -> int:
    """Fair-k, bounded or not: the most times that one node entered while another one was queued for its turn.

    A node is queued when a Child is sent for it, and its turn comes with the token. Turns of cancelled requests count.
    """
    past: dict[int, Counter[int]] = {}  # queued node -> how often each other node has entered since
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
    """Did the node's turn come, with a token or because it was queued behind its own idle token?"""
    if step.event != "message":
        return False
    kind = str(step.message[0])
    return kind == Token.tag or (kind == NumberedChild.tag and int(step.message[-1]) == step.node)
