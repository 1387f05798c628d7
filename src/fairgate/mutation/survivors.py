"""Statements that can be deleted without breaking safety or liveness, each with the reason.

They are listed by protocol, then by (handler, statement). A survivor that is missing here is reported as not explained.
A reason argues why the deletion makes no difference, or says what else the statement is for. Reasons that begin with
`which` or `where` belong to statements that implement an option of BV95: tests/paper/test_bv95.py fails without any
one of these.
"""

from fairgate.mutation.deletions import Deleted

# No node can tell the difference.
TIDY = "tidiness: the value is not read afterwards; clearing it gives equal states equal keys"
AGAIN = "redundant: FK:PR4 set it together with `next`, and no Child can arrive before TokenLocations"
ONCE = "not read again: T trusts and suspects each process only once"
SAME = "no effect: a repeated answer would set the same deadlines again, and a later renewal has another number"
TWICE = "not reached: only a duplicated REQUEST leads there, and channels do not duplicate here"
ENOUGH = (
    "a longer wait than the theorem needs: it relies on the process that S never suspects, whose ACK is awaited anyway"
)
NEVER_WRONG = (
    "not reached: T is never wrong here, so no node hears of its own crash"
    " (tests/paper/test_raymond_fd.py tells it one)"
)
BEYOND = "only matters if clocks differ by more than `drift`, and then two are in a slot before the message arrives"

# The deletion costs fairness or time.
PASSES = (
    "order: without the count the holder of an idle token overtakes the others, as in fair_k"
    " (tests/paper/test_fair_k_bounded.py detects it)"
)
ORDER = (
    "order: a newcomer's timestamps begin low and overtake nodes that have made many requests,"
    " until its own requests have raised them"
)
CENSUS = "order: only a census calls it, to keep waiters in order (tests/recovery/test_regenerate.py detects it)"
OLD_GONE = (
    "time: an outdated answer ends a valid permit, or repeats the request;"
    " the slot stays idle until the root takes it back"
)

# The deletion costs messages and nothing else.
ALONE = "messages: with nobody waiting the node still requests as usual, and gives itself the next turn"
USED_UP = "messages: its re-entries stay used up, so that it must request every further entry"
SHORTCUT = "messages: a shortcut to the root, with which the paper saves messages"
STALE = (
    "messages: an outdated INQUIRE or FAILED makes the next request give back locks that nobody wants."
    " Their arbiters lock the best request again"
)
ASKED = "messages: the arbiter inquires once per better request, and the holder answers once"
TO_THE_DEAD = "messages: crashed nodes get requests too, but nobody waits for their answers (n does not count them)"
ACK_TO_THE_DEAD = (
    "messages: an ACK to a crashed node; a process that is suspected after it was trusted makes no more requests"
)
SECOND_CRASH = (
    "messages: T suspects forever, so line 44 runs once; if it ran again, the broadcast would be repeated as well"
)
LONGER = (
    "messages: without path reversal the path is longer. The old parent still leads to where the token goes,"
    " since a node that releases it points at one that waits"
)

# The statement implements an option of BV95.
WHICH = "which tree to ask: any choice is safe and live"
ONE_TREE = "time: with a single tree every heuristic picks that one"
PLACE = "where in the queue: any order is safe and live"
NO_CACHE = "where in the queue: without it `none` keeps as many requests as `append`"

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
    "fair_k_bounded": {
        ("request_cs", "self.reentries += 1"): PASSES,
        ("put_aside", "self.fence = NIL"): TIDY,
        ("assign", "self.token_locations = ()"): TIDY,
        ("assign", "self.counter_number = NIL"): TIDY,
        ("on_token", "self.reentries = 0"): USED_UP,
        (
            "on_numbered_child",
            "if self.parent_on_child and self.parent != NIL and (self.next == NIL) and (m.b > self.turn):",
        ): SHORTCUT,
        ("on_numbered_child", "self.parent = m.r"): SHORTCUT,
        ("begin_turn", "self.reentries = 0"): USED_UP,
        ("nobody_waits", "return self.is_coordinator and self.token_locations.count(self.me) == self.setup.k"): ALONE,
    },
    "naimi_trehel": {("send_token", "self.fence = NIL"): TIDY},
    "bv95": {
        ("request_cs", "self.tick(0)"): PLACE,
        ("merged", "if self.cache == 'prepend':"): PLACE,
        ("merged", "if self.cache == 'sorted':"): PLACE,
        ("merged", "return kept + self.queue"): PLACE,
        ("merged", "return tuple(sorted(self.queue + kept, key=STAMP))"): PLACE,
        ("on_request", "self.tick(m.stamp)"): PLACE,
        ("on_request", "self.heard(m.t)"): WHICH,
        ("on_request", "self.parent[m.t] = m.r"): LONGER,
        ("on_request", "if self.tree == 'queue_hint':"): WHICH,
        ("on_request", "self.hint[m.t] += 1"): WHICH,
        ("keep", "if self.cache == 'none':"): NO_CACHE,
        ("keep", "self.parent[m.t] = m.r"): NO_CACHE,
        ("on_token", "self.tick(m.stamp)"): PLACE,
        ("on_token", "self.heard(m.t)"): WHICH,
        ("take_token", "if self.tree == 'last_used':"): WHICH,
        ("take_token", "self.touch(self.slot)"): WHICH,
        ("send_token", "self.tick(0)"): PLACE,
        ("send_token", "if self.tree == 'queue_hint':"): WHICH,
        ("send_token", "self.hint[self.slot] = len(rest) + 1"): WHICH,
        ("send_token", "self.slot = NIL"): TIDY,
        ("send_token", "self.fence = NIL"): TIDY,
        ("send_token", "self.queue = ()"): TIDY,
        ("tick", "if self.cache == 'sorted':"): PLACE,
        ("tick", "self.clock = max(self.clock, stamp) + 1"): PLACE,
        ("pick", "if self.k == 1:"): ONE_TREE,
        ("pick", "return 0"): ONE_TREE,
        ("pick", "if self.tree == 'random':"): WHICH,
        ("pick", "if self.tree == 'queue_hint':"): WHICH,
        ("pick", "if self.tree in ('last_used', 'most_recent'):"): WHICH,
        ("pick", "if self.tree == 'round_robin':"): WHICH,
        ("pick", "return self.out.choose(self.k)"): WHICH,
        ("pick", "return self.shortest()"): WHICH,
        ("pick", "return self.order[self.k - 1]"): WHICH,
        ("pick", "self.touch(t)"): WHICH,
        ("heard", "if self.tree in ('most_recent', 'stalest'):"): WHICH,
        ("heard", "self.touch(t)"): WHICH,
    },
    "raymond_fd": {
        ("on_crash_message", "self.stand_down()"): NEVER_WRONG,
        ("stand_down", "self.crashed.add(self.me)"): NEVER_WRONG,
        ("stand_down", "if self.inside:"): NEVER_WRONG,
        ("stand_down", "self.lose_cs('the others take this node for crashed')"): NEVER_WRONG,
        ("stand_down", "Raymond.release_cs(self)"): NEVER_WRONG,
        ("learn_crash", "self.others = tuple([i for i in self.others if i != j])"): TO_THE_DEAD,
        ("on_suspect", "self.T.add(peer)"): ACK_TO_THE_DEAD,
        ("on_trust", "if not self.ready:"): ENOUGH,
        ("on_trust", "self.S.discard(peer)"): ENOUGH,
        ("on_trust", "self.init_waits.discard(peer)"): ONCE,
        ("detect", "self.trusted.discard(j)"): SECOND_CRASH,
    },
    "suzuki_kasami": {
        ("send_token", "self.fence = NIL"): TIDY,
        ("send_token", "self.Q = ()"): TIDY,
        ("send_token", "self.LN = {}"): TIDY,
    },
    "maekawa": {
        ("logical_time", "return self.clock"): CENSUS,
        ("hear_time", "self.clock = max(self.clock, time)"): CENSUS,
        ("release_cs", "self.ts = NIL"): STALE,
        ("release_cs", "self.inquired = set()"): STALE,
        ("on_locked", "self.clock = max(self.clock, m.clock)"): ORDER,
        ("on_request", "self.clock = max(self.clock, m.ts)"): ORDER,
        ("on_locked", "if m.ts != self.ts:"): TWICE,
        ("on_locked", "self.tell(arbiter, Release(m.ts))"): TWICE,
        ("on_locked", "return"): TWICE,
        ("on_inquire", "if m.ts != self.ts:"): STALE,
        ("on_inquire", "return"): STALE,
        ("overtake", "self.inquiring = True"): ASKED,
    },
    "leased": {
        ("on_renewed", "self.renewing = False"): SAME,
        ("on_gone", "if not self.is_mine(m.slot, m.fence):"): OLD_GONE,
        ("on_gone", "return"): OLD_GONE,
        ("on_gone", "self.lose_cs(GIVEN_AWAY)"): BEYOND,
        ("forget_slot", "self.renewing = False"): TIDY,
    },
}


def explain(deleted: Deleted) -> str:
    """The reason why a deletion goes undetected; "" if none is listed."""
    return SURVIVORS.get(deleted.protocol, {}).get((deleted.handler, deleted.statement), "")
