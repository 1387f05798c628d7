"""Statements of EE's protocols under failures that can be deleted without a judge noticing, as in survivors.py.

Nearly every message is repeated and every promise expires, so one rule often hides what another one is for. Most
reasons name the test by hand that detects the deletion.
"""

from fairgate.mutation.dht_survivors import TIDY

# e2e_ft.
RULES = "tests/paper/test_e2e_ft_rules.py detects it"
FT = "tests/paper/test_e2e_ft.py detects it"
OLD_ROUND = f"not reached in so few runs: a replica must remember a round from before a reset ({RULES})"
LATE_VOTE = f"time: a vote that came late, or is from before a reset, is renewed only when the timer is due ({RULES})"
EARLIER_ASKED = f"time: the promise is counted from the question before the YIELD ({RULES})"
EXPIRED_VOTE = f"messages: `has_won` goes by the time, but the client keeps asking all replicas ({FT})"
SENT_BACK = f"time: the client asks again when its timer is due ({RULES})"
NOT_YIELDED = f"time: the client does not ask for the vote again either, so its promise ends after a while ({RULES})"
NO_COPY = f"time: requests that only the copy had are made again ({RULES})"
OLD_PROMISE = f"not reached in so few runs: the promise of a vote that was yielded counts for the winner ({FT})"
SAME_ROUND = f"not reached in so few runs: a late confirmation counts for a later question ({FT})"
TOKEN_AGAIN = f"not reached in so few runs: a TOKEN must come again after its lease is over ({RULES})"
FORMER_HEIR = f"time: an ENQUEUE is passed on to the heir of an earlier tenure, not sent back ({RULES})"
STILL_BOUND = (
    "no effect: `ask_again` gives up votes whose promises have ended, and other promises still bind their replicas"
)
ASKED_LATER = f"time: the client asks again only when its timer is due ({RULES})"
LOST_ASKS = f"messages: a node whose permit was lost goes on asking, and returns the votes it gets ({RULES})"
PASSED_ONCE = f"time: a request that was passed on once is never passed on again; its client asks again ({RULES})"
MULTIPLIED = f"messages: each duplicate of an ENQUEUE is passed on; this counts where many are duplicated ({FT})"
OLDER_COPY = f"time: the waiter may continue with an older copy; the requests that it lacks are made again ({FT})"
OWN_COPY = f"no effect unless all replicas have lost their memory: a copy of generation 0 is not used ({RULES})"
RANKED = f"order: the node's next request goes before others when it is repeated ({RULES})"
SEEMS_SILENT = f"messages: the waiter takes the owner for silent, and asks all replicas too early ({FT})"
BY_ITS_TIMER = f"time: the waiter asks all replicas only when its own timer is due ({FT})"
NEXT_MESSAGE = f"time: the next request that arrives makes the replica vote ({RULES})"
TWICE_WAITING = f"messages: an earlier request of the node stays in the queue, and the vote for it comes back ({RULES})"
SAME_LINEAGE = f"not reached in so few runs: an owner of another lineage while a promise lasts ({FT})"
PROMISE_ENDS = f"time: the replica learns of the owner only when the promise of its vote has ended ({RULES})"
BY_WINNER = f"time: the replica learns of the heir from its IAMWINNER; meanwhile the former owner passes on ({RULES})"
UNPROMISED = f"no effect: `serve_waiting` forgets a holder whose promise has ended or is cancelled ({FT})"
IN_VAIN = "no effect: the timer fires in vain, or is set again with the next promise"
MOVED = f"not reached in so few runs: a replica must move while a promise or a wait of it matters ({FT})"
NO_SETS = f"messages: no REQUEST is intercepted; that pays on long routes, and these rings are small ({RULES})"

EE_SURVIVORS: dict[str, dict[tuple[str, str], str]] = {
    "e2e_ft": {
        ("on_response", "if m.round > self.rounds[i]:"): OLD_ROUND,
        ("on_response", "self.rounds[i] = m.round"): OLD_ROUND,
        ("on_response", "self.ask_again(i, 0)"): LATE_VOTE,
        ("on_response", "if self.ends[i] < self.now + self.every:"): LATE_VOTE,
        ("yield_vote", "self.asked[i] = self.now"): EARLIER_ASKED,
        ("ask_again", "if self.is_mine(i) and self.ends[i] <= self.now:"): EXPIRED_VOTE,
        ("ask_again", "self.learn(i, OTHER)"): EXPIRED_VOTE,
        (
            "on_sent_back",
            "if self.is_asking() and m.stamp == self.stamp and (self.rounds[m.replica] == 0):",
        ): SENT_BACK,
        ("on_sent_back", "self.ask_again(m.replica, 0)"): SENT_BACK,
        ("ask_all_again", "self.yield_vote(i)"): NOT_YIELDED,
        ("win", "if self.copy and self.copy_generation >= self.best:"): NO_COPY,
        ("win", "requests = self.copy"): NO_COPY,
        ("win", "for i in range(len(self.keys)):"): OLD_PROMISE,
        ("win", "if not self.is_mine(i):"): OLD_PROMISE,
        ("win", "self.ends[i] = self.now"): OLD_PROMISE,
        ("hold", "self.ends = [self.now] * len(self.keys)"): OLD_PROMISE,
        ("route_winner", "self.rounds[i] += 1"): SAME_ROUND,
        ("lease_over", "self.tenure = self.generation"): TOKEN_AGAIN,
        ("lease_over", "self.tenure_lineage = self.lineage"): TOKEN_AGAIN,
        ("lease_over", "self.heir = NIL"): FORMER_HEIR,
        ("lease_over", "self.queue = []"): TIDY,
        ("lease_over", "self.know_nothing()"): STILL_BOUND,
        ("lease_over", "self.ask_all_again()"): ASKED_LATER,
        ("lease_over", "return"): LOST_ASKS,
        ("pass_on", "if self.now >= self.passed_until:"): PASSED_ONCE,
        ("pass_on", "self.passed, self.passed_until = ([], self.now + self.every)"): PASSED_ONCE,
        ("pass_on", "self.passed.extend(fresh)"): MULTIPLIED,
        ("copy_queue", "self.sequence += 1"): OLDER_COPY,
        ("on_copy", "self.copy = m.requests"): NO_COPY,
        ("on_copy", "self.copy_sequence = m.sequence"): OLDER_COPY,
        ("on_pong", "self.unanswered = 0"): SEEMS_SILENT,
        ("forget_copy", "self.copy = ()"): OWN_COPY,
        ("forget_copy", "self.copy_of = NIL"): TIDY,
        ("forget_copy", "self.copy_sequence = 0"): RANKED,
        ("send_ping", "self.out.send(self.copy_of, Ping(self.gate, self.copy_generation))"): SEEMS_SILENT,
        ("send_ping", "self.ask_all_again()"): BY_ITS_TIMER,
        ("on_timer", "self.wait_over(int(name.removeprefix(WAIT)))"): NEXT_MESSAGE,
        ("wait_over", "self.serve_waiting(i, self.replica(i))"): NEXT_MESSAGE,
        ("promise_over", "self.serve_waiting(i, r)"): NEXT_MESSAGE,
        ("keep", "r.waiting = [request for request in r.waiting if request[2] != node]"): TWICE_WAITING,
        (
            "is_bound",
            "return self.is_waiting(i) or r.vote != NIL or (r.holder != NIL and r.lineage != lineage"
            " and self.is_promised(i))",
        ): SAME_LINEAGE,
        ("on_winner", "self.refuse(i, r)"): PROMISE_ENDS,
        ("on_release_message", "self.refuse(i, r)"): NEXT_MESSAGE,
        (
            "on_release_message",
            "self.set_holder(i, r, m.heir, m.heir_stamp, m.generation + 1, m.lineage)",
        ): BY_WINNER,
        ("on_release_message", "r.holder = NIL"): UNPROMISED,
        ("on_release_message", "self.cancel_timer(f'{PROMISE}{i}')"): IN_VAIN,
        ("on_release_message", "self.serve_waiting(i, r)"): NEXT_MESSAGE,
        ("refuse", "if r.vote != NIL:"): PROMISE_ENDS,
        ("refuse", "self.recall(i, r, True)"): PROMISE_ENDS,
        ("refuse", "self.serve_waiting(i, r)"): NEXT_MESSAGE,
        ("give_replica", "self.cancel_timer(f'{PROMISE}{i}')"): MOVED,
        ("give_replica", "self.cancel_timer(f'{WAIT}{i}')"): MOVED,
        ("take_replica", "E2E.take_replica(self, i, replica)"): MOVED,
        ("take_replica", "self.handed[i] = list(handed)"): MOVED,
        ("take_replica", "if promised:"): MOVED,
        ("take_replica", "if waits:"): MOVED,
        ("take_replica", "self.promise(i)"): MOVED,
        ("take_replica", "self.set_timer(f'{WAIT}{i}', self.promise_time)"): MOVED,
        ("forget_replica", "E2E.forget_replica(self, i)"): MOVED,
        ("forget_replica", "self.handed.pop(i, None)"): MOVED,
        ("forget_replica", "self.cancel_timer(f'{PROMISE}{i}')"): MOVED,
        ("forget_replica", "self.cancel_timer(f'{WAIT}{i}')"): MOVED,
        ("on_handover", "E2E.on_handover(self, m)"): MOVED,
        ("stops", "return m.round == 0 and self.trusted.get(m.replica, 0) > self.now"): NO_SETS,
        (
            "note_owner",
            "if entry is None or self.is_news(m.generation, entry.generation) or (entry.owner == m.node"
            " and entry.generation == m.generation) or (entry.owner != NIL"
            " and self.trusted.get(m.replica, 0) <= self.now):",
        ): NO_SETS,
        ("note_owner", "self.entries[m.replica] = Entry(m.node, m.generation, next_hop, src)"): NO_SETS,
        ("note_owner", "self.trusted[m.replica] = self.now + self.promise_time"): NO_SETS,
    },
}
