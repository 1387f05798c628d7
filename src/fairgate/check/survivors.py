"""Statements that can be deleted without breaking safety or liveness in any case, each with the reason.

By protocol, then (handler, statement). Whatever is missing here is reported as not explained.
"""

from fairgate.check.deletions import Deleted

TIDY = "tidiness: nobody reads it then, but equal states have equal keys"
SHORTCUT = "a shortcut to the root, which the paper makes for fewer messages"
ALONE = "only a gate with one member depends on it: elsewhere the first answer looks again"
ORDER = "fairness: the order of requests, not safety; ties go by id"
TWICE = "a REQUEST heard twice leads there, and channels do not double here"
AGAIN = "already so: FK:PR4 has set it when `next` was"

SURVIVORS: dict[str, dict[tuple[str, str], str]] = {
    "fair_k": {
        ("assign", "self.token_locations = ()"): TIDY,
        ("assign", "self.counter_number = NIL"): TIDY,
        ("on_child", "if self.parent_on_child:"): SHORTCUT,
        ("on_child", "self.parent = m.r"): SHORTCUT,
        ("on_token_locations", "self.parent = self.next"): AGAIN,
        ("send_token", "self.slot = NIL"): TIDY,
        ("send_token", "self.fence = NIL"): TIDY,
    },
    "naimi_trehel": {("send_token", "self.fence = NIL"): TIDY},
    "suzuki_kasami": {
        ("on_token", "self.Q = m.Q"): "fairness: the queue can be made again from RN and LN, in another order",
        ("send_token", "self.fence = NIL"): TIDY,
        ("send_token", "self.Q = ()"): TIDY,
        ("send_token", "self.LN = {}"): TIDY,
    },
    "ricart_agrawala": {("request_cs", "self.await_replies()"): ALONE},
    "raymond": {("request_cs", "self.await_permissions()"): ALONE},
    "maekawa": {
        ("request_cs", "self.clock += 1"): ORDER,
        ("on_locked", "self.clock = max(self.clock, m.clock)"): ORDER,
        ("on_request", "self.clock = max(self.clock, m.ts)"): ORDER,
        ("release_cs", "self.ts = NIL"): TIDY,
        ("on_locked", "if m.ts != self.ts:"): TWICE,
        ("on_locked", "self.tell(arbiter, Release(m.ts))"): TWICE,
        ("on_locked", "return"): TWICE,
    },
}


def explain(deleted: Deleted) -> str:
    """Why a deletion goes unnoticed; "" if nobody has said."""
    return SURVIVORS.get(deleted.protocol, {}).get((deleted.handler, deleted.statement), "")
