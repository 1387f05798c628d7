"""Statements of EE's protocols under failures that can be deleted without a judge noticing, as in survivors.py.

Nearly every message is repeated and every promise expires, so one rule often hides what another one is for. Most
reasons name the test by hand that detects the deletion.
"""

from fairgate.mutation.dht_survivors import LITERAL_ONLY, TIDY

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
UNPROMISED = f"no effect: `serve_waiting` forgets a holder whose promise has ended or is cancelled ({FT})"
IN_VAIN = "no effect: the timer fires in vain, or is set again with the next promise"
MOVED = f"not reached in so few runs: a replica must move while a promise or a wait of it matters ({FT})"
NO_SETS = f"messages: no REQUEST is intercepted; that pays on long routes, and these rings are small ({RULES})"

# non_e2e_faults.
NF = "tests/paper/test_non_e2e_faults.py detects it"
NF_RULES = "tests/paper/test_non_e2e_faults_rules.py detects it"
ENTRY_STAYS = (
    f"time: the entry of a lost request stays; the requests that it keeps ask again, bypassing it ({NF_RULES})"
)
ENTRY_ENDS = f"messages: the entry expires early, and the requests that it keeps are routed on ({NF_RULES})"
FORMER_LIFE = f"not reached in so few runs: an attempt from before a reset counts as a current one ({NF})"
UNTIL_ANSWERED = f"time: an expired vote is given up only when the replica answers that it is gone ({NF_RULES})"
OLD_PLACE = f"time: a Ping goes to the node that served the replica before; the next one is routed ({NF_RULES})"
SAME_NUMBER = f"not reached in so few runs: a late answer counts for a later question ({NF_RULES})"
OLD_QUESTION = (
    "no effect: an answer to such a question extends nothing; it stays only if all later ones are unanswered as well"
)
BY_LEASES = "not needed here: with leases, votes are counted by their leases"
LATER_LOST = f"time: the permit ends with its lease, not when a replica answers that its vote is gone ({NF_RULES})"
NOTHING_LEASED = "no effect: the timer finds no lease to renew"
NEXT_VOTE = "no effect: the timer fires in vain, or is set again with the next vote"
REPLICA_MOVED = f"not reached in so few runs: a replica must move while its lease or its wait matters ({NF_RULES})"
HANDED_VOTE = f"not reached in so few runs: a replica must be handed over while its vote matters ({NF})"
LOST_QUEUE = f"time: what a RELEASE had gathered is lost with it; those requesters ask again ({NF_RULES})"
SENT_OFTEN = f"messages: copies are sent again although they have arrived, or more than a few times ({NF_RULES})"
LOST_YIELD = f"time: the replica learns of a lost YIELD only when it notifies the owner again ({NF_RULES})"
DEAD_QUEUED = f"messages: requests of crashed nodes are passed on, and dropped at the replica ({NF_RULES})"
NEXT_REQUEST = f"time: the next request that arrives makes the replica vote ({NF_RULES})"
PATH_BROKEN = f"time: the entries of a broken path stay; requesters ask again, bypassing them ({NF})"
SILENT_NEIGHBOUR = f"time: a path is mended when the crash is reported; with leases, its entries expire ({NF_RULES})"
NOBODY_RETURNS = f"not reached: no node that was reported as crashed returns in these runs ({NF_RULES})"

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
    "non_e2e_faults": {
        ("numbered_timer_due", "self.dissolve(entry, False)"): ENTRY_STAYS,
        ("request_cs", "if self.lease and (not self.life):"): FORMER_LIFE,
        ("request_cs", "self.life = 1 + self.out.choose(LIVES)"): FORMER_LIFE,
        ("ask_again", "for replica in sorted(self.leases):"): UNTIL_ANSWERED,
        ("ask_again", "if self.leases[replica].until <= self.now and self.asks[replica].vote:"): UNTIL_ANSWERED,
        ("ask_again", "self.lose_vote(replica)"): UNTIL_ANSWERED,
        ("take_vote", "self.leases[replica].at = src"): OLD_PLACE,
        ("ping", "self.pings += 1"): SAME_NUMBER,
        ("ping", "for n in [n for n, sent in lease.questions.items() if sent + self.lease <= self.now]:"): OLD_QUESTION,
        ("ping", "del lease.questions[n]"): OLD_QUESTION,
        ("on_ack", "lease.at = src"): OLD_PLACE,
        ("lose_vote", "self.voted -= ask.vote"): BY_LEASES,
        ("lose_vote", "ask.holder = NIL"): LITERAL_ONLY,
        ("watch", "self.lose('votes were gone')"): LATER_LOST,
        ("forget", "self.cancel_timer('ping')"): NOTHING_LEASED,
        ("vote", "self.cancel_timer(f'{VOTE}{number}')"): NEXT_VOTE,
        ("take_replica", "if waits:"): REPLICA_MOVED,
        ("take_replica", "if self.replicas[i].owner and self.lease:"): REPLICA_MOVED,
        ("take_replica", "self.set_timer(f'{WAIT}{i}', self.hold)"): REPLICA_MOVED,
        ("take_replica", "self.set_timer(f'{VOTE}{i}', self.hold)"): REPLICA_MOVED,
        ("knows_nothing", "return Mending.knows_nothing(self, number) or self.is_waiting(number)"): HANDED_VOTE,
        ("took_owner", "if self.lease:"): REPLICA_MOVED,
        ("took_owner", "self.set_timer(f'{VOTE}{number}', self.hold)"): REPLICA_MOVED,
        ("make_entry", "if self.lease:"): ENTRY_STAYS,
        ("make_entry", "self.keep_entry(entry.replica)"): ENTRY_STAYS,
        ("keep_entry", "self.set_timer(f'{ENTRY}{replica}', (len(self.keys) + 1) * self.hold)"): ENTRY_STAYS,
        ("pass_request", "if self.lease and entry is not None and is_of(entry, m):"): ENTRY_ENDS,
        ("pass_request", "self.keep_entry(m.replica)"): ENTRY_ENDS,
        ("on_timer", "self.pass_kept_again(NIL)"): LOST_QUEUE,
        ("on_request", "if replica.owner and self.follows(m.asked, replica.owner):"): LOST_YIELD,
        ("on_request", "replica.owner = ()"): LOST_YIELD,
        (
            "follows",
            "return asked[:2] == before[:2] and asked > before and (asked[2] >> LIFE == before[2] >> LIFE)",
        ): LOST_YIELD,
        ("keep", "self.kept[onward.replica, onward.ts, onward.node, onward.attempt] = kept"): LOST_QUEUE,
        ("keep", "self.set_timer('keep', self.lease // 3)"): LOST_QUEUE,
        ("on_taken", "if kept is not None and kept.before != NIL:"): SENT_OFTEN,
        ("on_taken", "self.out.send(kept.before, m)"): SENT_OFTEN,
        ("pass_kept_again", "for key in sorted(self.kept):"): LOST_QUEUE,
        ("pass_kept_again", "if self.kept:"): LOST_QUEUE,
        ("pass_kept_again", "if crashed in (NIL, kept.next):"): LOST_QUEUE,
        ("pass_kept_again", "self.set_timer('keep', self.lease // 3)"): LOST_QUEUE,
        ("pass_kept_again", "self.door.route(kept.msg.with_queue(kept.msg.queue, self.me))"): LOST_QUEUE,
        ("pass_kept_again", "kept.tries -= 1"): SENT_OFTEN,
        ("pass_kept_again", "if kept.tries == 0:"): SENT_OFTEN,
        ("pass_kept_again", "del self.kept[key]"): SENT_OFTEN,
        ("on_crash", "for entry in in_order(self.first):"): DEAD_QUEUED,
        ("on_crash", "entry.queue = self.of_the_living(entry.queue or [])"): DEAD_QUEUED,
        ("on_crash", "self.vote(number, replica)"): NEXT_REQUEST,
        ("on_suspect", "self.mend_paths(peer)"): SILENT_NEIGHBOUR,
        ("mend_paths", "self.pass_kept_again(peer)"): LOST_QUEUE,
        ("on_trust", "self.crashed.discard(peer)"): NOBODY_RETURNS,
        ("mend", "if entry.previous == peer:"): PATH_BROKEN,
        ("mend", "self.door.route(self.clean_up(entry))"): PATH_BROKEN,
    },
}
