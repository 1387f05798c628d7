"""Statements that can be deleted without breaking safety or liveness, each with the reason.

They are listed by protocol, then by (handler, statement); those of the protocols over a DHT are in dht_survivors.py,
ee_survivors.py and sigma_survivors.py. A survivor that is missing is reported as not explained. A reason argues why the
deletion makes no difference, or says what else the statement is for. Reasons that begin with `which` or `where` belong
to statements that implement an option of BV95: tests/paper/test_bv95.py fails without any one of these.
"""

from fairgate.mutation.deletions import Deleted
from fairgate.mutation.dht_survivors import DHT_SURVIVORS, TIDY
from fairgate.mutation.ee_survivors import EE_SURVIVORS
from fairgate.mutation.sigma_survivors import SIGMA_SURVIVORS

# No node can tell the difference.
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

# one_line: a wrong promise or report sends a token to a node that gives it back, so it is never unsafe. That each of
# these deletions costs something is tested by tests/mutants/test_one_line.py.
PROMISE = "time: a promise is missing or outdated, so that a token takes another hop, through the coordinator"
REPORT = "time: the coordinator believes in an outdated loan or request, and sends tokens that come back"
IN_ORDER = "order: a request waits longer for the holder that it was promised to, while others overtake it"
DOOR = "messages: the node knows an older coordinator, so its messages are forwarded more often"
REIGN = "load: the Line moves on earlier or later, or goes to another node"
LONE = "messages: a lone client does not become the coordinator, or another one does"
CHASED = (
    "time: only an adversary lets a request run after the Line forever"
    " (tests/mutants/test_one_line.py has one); duplicates come back"
)
TWICE_IN_LINE = "time: only a request that came into the line twice is left over, and gets a token that comes back"
UNUSED = "not reached in so few walks: two promises end in one step (tests/mutants/test_one_line.py detects it)"
FASTER = "not needed: `served` does the same, but searches all loans"
ABSTRACT = "not reached: OneLine defines this method"
ON_ITS_WAY = "not reached: it takes `ahead` > 1 and a race (tests/paper/test_one_line.py has the state)"
AGES = "tidiness: a Line with counts instead of ages means the same, but has another form"
REPEATED = "messages: a Head repeats the promise that a token already carries"
HELD_BACK = "tidiness: nobody waits while a token is idle, so an idle loan is promised to nobody"
DROPS_ITSELF = "tidiness: a holder that is the first in its own promise drops itself when it leaves"
HEARD = "tidiness: every token and every Line that comes for the next stay replaces it"

# The statement implements an option of BV95.
WHICH = "which tree to ask: any choice is safe and live"
ONE_TREE = "time: with a single tree every heuristic picks that one"
PLACE = "where in the queue: any order is safe and live"
NO_CACHE = "where in the queue: without it `none` keeps as many requests as `append`"

SURVIVORS: dict[str, dict[tuple[str, str], str]] = {
    **DHT_SURVIVORS,
    **EE_SURVIVORS,
    **SIGMA_SURVIVORS,
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
        ("put_aside", "self.token_present = False"): TIDY,
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
    "one_line": {
        ("request_cs", "self.stamp = 0"): PROMISE,
        ("request_cs", "line.left -= 1"): REIGN,
        ("release_cs", "self.fence = NIL"): TIDY,
        ("release_cs", "self.to_door(Gone(self.latest, slot, fence, r, n, self.stamp))"): REPORT,
        ("on_token", "self.learn(m.reign, m.door)"): DOOR,
        ("on_token", "self.serve(line, NIL)"): REPORT,
        ("on_head", "self.learn(m.reign, m.door)"): DOOR,
        ("on_head", "if self.requesting_cs and m.n == self.n:"): PROMISE,
        ("hear", "if stamp > self.stamp and self.line is None:"): PROMISE,
        ("hear", "self.stamp = stamp"): PROMISE,
        ("learn", "if reign > self.latest:"): DOOR,
        ("learn", "self.latest = reign"): DOOR,
        ("to_door", "self.early.append(m)"): ON_ITS_WAY,
        ("on_ask", "line.left = 0 if self.is_lone(line, m.r) else line.left - 1"): REIGN,
        ("on_ask", "line.last = m.r"): LONE,
        ("on_ask", "if m.hops >= self.chase and (m.r, m.n) not in self.chased:"): CHASED,
        ("on_ask", "self.chased = (*self.chased, (m.r, m.n))"): CHASED,
        ("on_free", "self.served(line, m.r, m.n)"): REPORT,
        ("on_gone", "if line is not None:"): REPORT,
        ("on_gone", "self.served(line, m.r, m.n)"): REPORT,
        ("on_gone", "self.serve(line, m.r)"): PROMISE,
        ("on_gone", "if m.reign >= self.latest:"): REPORT,
        ("on_gone", "self.early.append(m)"): REPORT,
        ("on_gone", "self.to_door(Gone(self.latest, m.slot, m.fence, m.r, m.n, m.stamp))"): REPORT,
        ("on_moved", "self.latest = line.reign"): DOOR,
        ("on_moved", "for r, n in self.chased:"): CHASED,
        ("on_moved", "self.join(line, r, n)"): CHASED,
        ("on_moved", "self.chased = ()"): CHASED,
        ("on_moved", "if self.line is not None:"): PROMISE,
        ("on_moved", "self.serve(self.line, NIL)"): PROMISE,
        ("on_moved", "self.stamp = max(self.stamp, loan.stamp)"): PROMISE,
        ("waits_for", "raise NotImplementedError"): ABSTRACT,
        ("end", "line.doubled.discard(r)"): TWICE_IN_LINE,
        ("serve", "self.promise(line, heir)"): PROMISE,
        ("serve", "self.renew(line)"): IN_ORDER,
        ("serve", "entrant = r"): REIGN,
        ("move", "if self.slot != NIL:"): PROMISE,
        ("begin_loan", "if r != self.me:"): PROMISE,
        ("pass_loan", "loan.fence = m.fence"): REPORT,
        ("take_back", "loan.holder = NIL"): PROMISE,
        ("promise", "self.renew(line)"): IN_ORDER,
        ("promise", "break"): PROMISE,
        ("renew", "return"): IN_ORDER,
        ("stamp_promise", "loan.stamp += 1"): PROMISE,
        ("release_cs", "while self.next == self.me:"): REPORT,
        ("release_cs", "self.keep(self.rest)"): DROPS_ITSELF,
        ("release_cs", "self.keep(())"): HEARD,
        ("on_token", "self.hear(m.stamp, m.next, m.next_n, m.rest)"): PROMISE,
        ("on_head", "self.hear(m.stamp, m.next, m.next_n, m.rest)"): PROMISE,
        ("hear", "self.next = r"): PROMISE,
        ("hear", "self.next_n = n"): PROMISE,
        ("hear", "self.rest = rest"): PROMISE,
        ("keep", "self.next = rest[0][0]"): PROMISE,
        ("keep", "self.next_n = rest[0][1]"): PROMISE,
        ("keep", "self.rest = rest[1:]"): PROMISE,
        ("keep", "self.next_n = 0"): TIDY,
        ("keep", "self.rest = ()"): TIDY,
        ("on_gone", "if m.fence > loan.fence:"): REPORT,
        ("on_gone", "self.pass_loan(line, loan, m)"): REPORT,
        ("on_moved", "line.left = max(self.reign, self.k, line.waiting.known // 2)"): REIGN,
        ("on_moved", "self.keep(())"): PROMISE,
        ("on_moved", "self.withdraw(line, loan)"): PROMISE,
        ("end", "line.waiting.remove(r)"): TWICE_IN_LINE,
        ("drop", "line.changed.add(loan.slot)"): PROMISE,
        ("drop", "self.starve(line, loan)"): PROMISE,
        ("drop", "if loan.next == NIL:"): UNUSED,
        ("drop", "line.told.remove(loan.slot)"): UNUSED,
        ("serve", "if line.hungry.count > 0:"): PROMISE,
        ("move", "line.trim()"): AGES,
        ("move", "self.starve(line, line.loans[self.slot])"): PROMISE,
        ("is_lone", "return line.last == r and line.waiting.known == 0 and (line.idle.count == self.k)"): LONE,
        ("begin_loan", "line.hungry.remove(loan.slot)"): IN_ORDER,
        ("begin_loan", "self.starve(line, loan)"): PROMISE,
        (
            "pass_loan",
            "if m.stamp == loan.stamp and loan.next == m.r and (loan.next_n == m.n) and (m.r != self.me):",
        ): IN_ORDER,
        ("pass_loan", "self.begin_loan(line, loan, m.r, m.n)"): PROMISE,
        ("pass_loan", "if not self.is_doubled(line, m.r):"): FASTER,
        ("pass_loan", "line.waiting.forget(m.r)"): FASTER,
        ("pass_loan", "self.withdraw(line, loan)"): IN_ORDER,
        ("take_back", "line.hungry.remove(slot)"): HELD_BACK,
        ("promise", "while line.hungry.count > 0 and self.ahead > 0:"): PROMISE,
        ("promise", "if loan.holder != heir:"): PROMISE,
        ("promise", "if r == NIL:"): PROMISE,
        ("fill", "if not loan.has_promised(r):"): PROMISE,
        ("fill", "loan.rest = (*loan.rest, (r, n))"): PROMISE,
        ("renew", "while line.told.count > 0:"): IN_ORDER,
        ("renew", "if line.count - loan.since < self.limit:"): IN_ORDER,
        ("tell", "line.changed.remove(loan.slot)"): REPEATED,
        (
            "tell",
            "self.out.send(loan.holder, Head(loan.n, self.latest, self.door, loan.stamp, loan.next, loan.next_n,"
            " loan.rest))",
        ): PROMISE,
        ("stamp_promise", "line.told.remove(loan.slot)"): IN_ORDER,
        ("stamp_promise", "line.count += 1"): IN_ORDER,
        ("stamp_promise", "loan.since = line.count"): IN_ORDER,
        ("starve", "if loan.next == NIL or 1 + len(loan.rest) <= self.ahead // 2:"): PROMISE,
        ("starve", "line.hungry.add(loan.slot)"): PROMISE,
    },
    "naimi_trehel": {("send_token", "self.fence = NIL"): TIDY},
    "bv95": {
        ("request_cs", "self.tick(0)"): PLACE,
        ("again_cs", "self.tick(0)"): PLACE,
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
    "raymond_tree": {
        ("assign_privilege", "self.fence = NIL"): TIDY,
    },
    "srimani_reddy": {
        ("release_cs", "self.fence = NIL"): TIDY,
        ("release_cs", "self.Q = ()"): TIDY,
    },
    "maekawa": {
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
