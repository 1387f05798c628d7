"""Statements of protocols over a DHT that can be deleted without breaking safety or liveness, as in survivors.py."""

# No node can tell the difference.
TIDY = "tidiness: the value is not read afterwards; clearing it gives equal states equal keys"

# e2e. Quorum sets save messages. A wrong entry sends a REQUEST to a former owner, which passes it on or sends it back.
BOTH_RESET = "redundant: `know_nothing` and `take_queue` both reset it, and every request ends with the latter"
BOTH_EMPTY = "redundant: `take_queue` and `release_cs` both empty the queue, which is used only in between"
ONE_LINEAGE = "not needed here: the lineage is always 0; e2e_ft draws them"
NO_RANK = "not needed here: the rank of a request is always 0; e2e_ft has ranks"
NO_HEIR = "tidiness: the stamp is read only together with an heir"
OTHER_STAMPS = "order: other messages correct a slow clock as well"
OWNER_STAMP = "order: a client uses the owner's stamp only to correct its clock; the owner is for `e2e_literal`"
EARLY_YIELD = "time: the client yields recalled votes without waiting for the answer to its second REQUEST"
SAME_ROUND = "not needed here: only a YIELD makes an earlier vote invalid, and has a number of its own"
NO_SETS = "messages: no REQUEST is intercepted; that pays on long routes, and these rings are small"
TWO_WAYS = "messages: a REQUEST that was intercepted goes on as well, and is queued once"
LATE_RELEASE = "messages: a late RELEASE removes the entry of the next owner, so that REQUESTs pass"
OLD_ENTRY = "messages: an outdated entry stays. The REQUESTs that it intercepts are passed on or sent back"
OLD_ROUTE = "messages: entries on a route that has changed since stay. The REQUESTs that they intercept are sent back"
TWO_MISSED = "not reached in so few runs: the replica must have missed two owners (tests/paper/test_e2e.py detects it)"
ASKS_FORMER = "time: until the RELEASE arrives, the replica sends the repeated REQUEST to the former owner again"
NOT_AGAIN = (
    "not reached: a REQUEST is repeated only after an ENQUEUE, when the replica has forgotten it;"
    " e2e_ft repeats it in other cases"
)
YIELD_TWICE = "not reached: links do not duplicate here, and a YIELD has a later round than its vote"
TWICE_WAITING = "messages: a request that is over stays in the queue, and the vote for it comes back"
LATER_ONE = "not reached in so few runs: a REQUEST later than the next one (tests/paper/test_e2e.py detects it)"
RECALLED_OFTEN = "messages: the replica recalls its vote for every better request, not only for the first"
LAST_TO_WAIT = (
    "time: the next message serves those that wait; a hang takes a vote for a request that is over, and no next message"
    " (tests/paper/test_e2e.py detects it)"
)
BY_THE_QUEUE = (
    "time: the loser keeps the vote until its turn. That comes, because a majority has its request and hands it over"
)
BY_RELEASE = (
    "messages: the winner's RELEASE returns its vote as well. If the next IAMWINNER arrives earlier, a RECALL is sent"
    " in vain"
)
MOVED_RARELY = (
    "not reached in so few runs: somebody must depend on a replica that has moved"
    " (tests/paper/test_ee_moves.py, test_non_e2e.py)"
)
TO_THE_LEFT = "messages: RELEASE takes both routes, and is sent to the node that has left in vain"
AFTER_LOAD = "order: only gates that are opened after a load start with another clock; any stamps are safe"

# sigma. Leases and repeated questions make up for most mistakes, after a while.
PROBE_QUEUED = (
    "messages: the clock probe takes a vote or a place in a queue (tests/paper/test_sigma_times.py detects it)"
)
PROBE_SILENT = "time: a fresh client waits for a silent replica (tests/paper/test_sigma.py detects it)"
LOOKED_UP = "messages: the next question takes the overlay's route instead of the direct one"
OFF_BY_ONE = "no effect: the next answer replaces it, and `answered` only tells when to look for votes that are wanted"
COUNTED_AGAIN = (
    "not reached in so few runs: a vote for the probe, or one that was yielded, must be repeated"
    " (tests/paper/test_sigma.py detects the latter); otherwise no effect"
)
NO_VOTE = "no effect: without a vote there is no lease to renew, and `contend` repeats what the last answer led to"
POSTPONED = "messages: clients ask for votes that are on their way; that counts with many replicas and long queues"
NO_RETRY = "messages: clients ask again although retries are disabled (tests/mutants/test_sigma.py detects it)"
SOON_ENOUGH = (
    "time: a replica that has lost its memory is asked again only after Tw (tests/paper/test_sigma.py detects it)"
)
BACK_AND_FORTH = "messages: a vote goes back and forth between a client and a replica more often"
YIELD_LATER = "time: a vote that was kept for a while is given back only when the next answer arrives"
BY_INQUIRY = (
    "time: votes that an earlier request is waiting for are given back by `yield_wanted` as well"
    " (tests/paper/test_sigma.py detects it)"
)
YIELD_EARLY = "messages: a client yields although another one may still win"
ASKED_EARLY = "messages: the replica is asked again when the vote that was given back would have been renewed"
SHORTER_LEASE = "time: the lease is counted from an earlier question (tests/paper/test_sigma_times.py, tests/mutants)"
FALSY = "no effect: without it the method returns None, which is as false"
AT_LEASE_END = "time: only the end of the lease makes up for a lost message of the owner (tests/mutants/test_sigma.py)"
NOT_BOTH = "no effect: a client that owns the vote does not wait for it as well"
ROUGH_TCS = "time: Tcs is less exact, so that clients ask again too early or too late"
ASKS_WITHOUT_TW = "time: the client is not told Tw, so it asks again after a timeout"

# non_e2e.
ONLY_FAULTS = "not needed here: only non_e2e_faults asks replicas again that have answered"
HOOK = "not needed here: a hook of non_e2e_faults, empty here"
LITERAL_ONLY = (
    "not needed here: whom the others vote for matters only without correction 7 (tests/paper/test_non_e2e.py)"
)
NOTHING_ASKED = "no effect: the timer finds no question to repeat"
ASKS_INSIDE = "messages: a node that has entered asks for the missing votes again"
BY_LATER_VOTE = (
    "time: replicas that have not voted for the node have its request. When the first of them votes for it,"
    " `ask_later` sets the timer"
)
LATE_VOTE = "not reached in so few runs: a vote must arrive after it was given back (tests/paper/test_non_e2e.py)"
SAME_DELAY = "messages: the delay between questions does not grow; that pays where waits are long"
ASKED_ONCE = "not reached: a request is asked for once under each number, or past the entries"
DISAGREE = "not reached in so few runs: the tables of two nodes must disagree (tests/paper/test_non_e2e.py detects it)"
OLD_WAY = "not reached in so few runs: a route must change before the RELEASE (tests/paper/test_non_e2e.py detects it)"
PATH_MOVED = (
    "not reached in so few runs: a node with a queue of others must leave, or become the owner of the key"
    " (tests/paper/test_non_e2e.py detects it)"
)
OWN_QUEUED = "messages: the owner's request is queued as well, until its RELEASE takes it out"
NO_LOSS = "not needed here: links lose nothing, so the vote is on its way"

DHT_SURVIVORS: dict[str, dict[tuple[str, str], str]] = {
    "e2e": {
        ("know_nothing", "self.best = 0"): BOTH_RESET,
        ("ask_again", "if self.known[i] == OTHER:"): EARLY_YIELD,
        ("ask_again", "self.rounds[i] += 1"): SAME_ROUND,
        ("ask_again", "self.learn(i, ASKED)"): EARLY_YIELD,
        ("take_queue", "self.best = 0"): BOTH_RESET,
        ("take_queue", "self.queue = []"): BOTH_EMPTY,
        ("put", "self.see_stamp(stamp)"): OTHER_STAMPS,
        ("redirect", "if m.via != NIL:"): OLD_ENTRY,
        ("redirect", "self.out.send(m.via, Stale(self.gate, m.replica, self.tenure))"): OLD_ENTRY,
        ("release_cs", "self.tenure_lineage = self.lineage"): ONE_LINEAGE,
        ("release_cs", "self.heir_stamp = 0"): NO_HEIR,
        ("release_cs", "self.queue = []"): BOTH_EMPTY,
        ("on_token", "self.see_stamp(m.clock)"): OTHER_STAMPS,
        ("on_token", "self.lineage = m.lineage"): ONE_LINEAGE,
        ("forward", "if isinstance(msg, IAmWinner):"): NO_SETS,
        ("forward", "self.note_owner(src, msg, next_hop)"): NO_SETS,
        ("forward", "if isinstance(msg, Release):"): NO_SETS,
        ("forward", "if isinstance(msg, Request) and self.stops(msg) and self.intercept(msg):"): NO_SETS,
        ("forward", "return None"): TWO_WAYS,
        ("stops", "return m.ended == 0"): NO_SETS,
        ("intercept", "return True"): TWO_WAYS,
        ("note_owner", "if entry is None or self.is_news(m.generation, entry.generation):"): NO_SETS,
        ("note_owner", "self.entries[m.replica] = Entry(m.node, m.generation, next_hop, src)"): NO_SETS,
        ("clean_up", "if not self.is_news(m.generation + 1, entry.generation):"): LATE_RELEASE,
        ("clean_up", "if onward not in (NIL, next_hop):"): OLD_ROUTE,
        ("clean_up", "self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)"): OLD_ENTRY,
        ("clean_up", "return m"): LATE_RELEASE,
        ("clean_up", "self.out.send(onward, m)"): OLD_ROUTE,
        ("on_stale", "if entry is not None and entry.generation <= m.generation:"): OLD_ENTRY,
        ("on_stale", "self.entries[m.replica] = Entry(NIL, m.generation, NIL, NIL)"): OLD_ENTRY,
        ("on_request", "if m.ended >= r.generation and r.holder != NIL:"): ASKS_FORMER,
        ("on_request", "r.generation = m.ended"): TWO_MISSED,
        ("on_request", "self.vote_again(m.replica, r, m.round, m.known)"): NOT_AGAIN,
        ("vote_again", "if round >= r.vote_round:"): NOT_AGAIN,
        ("vote_again", "self.respond(i, r, r.vote, r.vote_stamp, r.vote_round, True)"): NOT_AGAIN,
        ("vote_again", "if r.recalled:"): NOT_AGAIN,
        ("vote_again", "r.vote_round = round"): NOT_AGAIN,
        ("vote_again", "r.vote_known = known"): NOT_AGAIN,
        ("vote_again", "self.recall(i, r, False)"): NOT_AGAIN,
        ("on_yield", "if r.vote_round >= m.round:"): YIELD_TWICE,
        ("on_yield", "self.vote_again(m.replica, r, m.round, m.known)"): YIELD_TWICE,
        ("on_yield", "return"): YIELD_TWICE,
        ("keep", "for at in range(len(r.waiting)):"): TWICE_WAITING,
        ("keep", "if other == node and other_stamp > stamp:"): LATER_ONE,
        ("keep", "if other == node:"): TWICE_WAITING,
        ("keep", "return"): LATER_ONE,
        ("keep", "del r.waiting[at]"): TWICE_WAITING,
        ("cast", "r.vote_known = -rank"): NO_RANK,
        ("respond", "if r.holder != NIL:"): OWNER_STAMP,
        ("respond", "owner = r.holder"): OWNER_STAMP,
        ("respond", "owner_stamp = r.holder_stamp"): OWNER_STAMP,
        ("recall", "r.recalled = True"): RECALLED_OFTEN,
        ("on_winner", "self.use_vote(r, m.node, m.stamp)"): BY_RELEASE,
        ("on_release_message", "self.serve_waiting(m.replica, r)"): LAST_TO_WAIT,
        ("set_holder", "r.holder_stamp = stamp"): OWNER_STAMP,
        ("set_holder", "r.lineage = lineage"): ONE_LINEAGE,
        ("set_holder", "if r.vote not in (NIL, node):"): BY_THE_QUEUE,
        ("set_holder", "self.dispossess(i, r)"): BY_THE_QUEUE,
        ("dispossess", "self.recall(i, r, True)"): BY_THE_QUEUE,
        ("on_range", "for i in sorted(self.replicas):"): MOVED_RARELY,
        ("on_range", "if not is_between(self.keys[i], start, end):"): MOVED_RARELY,
        (
            "on_range",
            "self.door.route(HandOver(self.gate, self.keys[i], i, *self.replicas[i].key()))",
        ): MOVED_RARELY,
        ("on_range", "self.forget_replica(i)"): MOVED_RARELY,
        ("forget_replica", "del self.replicas[i]"): MOVED_RARELY,
        ("on_handover", "if r.vote == NIL and m.generation >= r.generation and (r.holder == NIL):"): MOVED_RARELY,
        ("on_handover", "for rank, stamp, requester, round in m.waiting:"): MOVED_RARELY,
        ("on_handover", "self.serve_waiting(m.replica, r)"): MOVED_RARELY,
        (
            "on_handover",
            "r.vote, r.vote_stamp, r.vote_round, r.vote_known = (m.vote, m.vote_stamp, m.vote_round, m.vote_known)",
        ): MOVED_RARELY,
        ("on_handover", "r.recalled = m.recalled"): MOVED_RARELY,
        ("on_handover", "r.holder, r.holder_stamp = (m.holder, m.holder_stamp)"): MOVED_RARELY,
        ("on_handover", "r.generation, r.lineage = (m.generation, m.lineage)"): MOVED_RARELY,
        ("on_handover", "self.keep(r, requester, stamp, round, -rank)"): MOVED_RARELY,
        ("on_leave", "for i in sorted(self.entries):"): TO_THE_LEFT,
        ("on_leave", "if entry.owner != NIL and entry.previous not in (NIL, self.me):"): TO_THE_LEFT,
        ("on_leave", "self.out.send(entry.previous, Stale(self.gate, i, entry.generation))"): TO_THE_LEFT,
        ("take_replica", "self.replicas[i] = Replica.from_key(state)"): MOVED_RARELY,
        ("start_clock", "self.ahead = clock - self.now"): AFTER_LOAD,
    },
    "sigma": {
        ("is_probe", "return self.probing"): PROBE_QUEUED,
        ("probed", "self.learn(r, m)"): LOOKED_UP,
        ("probed", "r.clear()"): OFF_BY_ONE,
        ("probed", "self.answered = 0"): OFF_BY_ONE,
        ("take", "return"): COUNTED_AGAIN,
        ("take", "if self.votes == 1:"): POSTPONED,
        ("take", "self.expect_votes()"): POSTPONED,
        ("retry_later", "if not self.resend:"): NO_RETRY,
        ("retry_later", "return"): NO_RETRY,
        ("expect_votes", "for r in self.resp:"): POSTPONED,
        ("expect_votes", "if r.grant == 0 and (not r.silent):"): POSTPONED,
        ("expect_votes", "if self.forgetful and self.now - self.started - r.sent > RECENT * timeout:"): POSTPONED,
        ("expect_votes", "self.look_later(r, 0)"): POSTPONED,
        ("expect_votes", "if r.due < self.now + timeout:"): POSTPONED,
        ("expect_votes", "r.due = self.now + timeout"): POSTPONED,
        ("forget_served", "if self.resend:"): SOON_ENOUGH,
        ("forget_served", "self.look_later(r, self.timeout())"): SOON_ENOUGH,
        ("keep_a_while", "r.hold = self.now + r.delay"): BACK_AND_FORTH,
        ("keep_a_while", "if self.resend:"): YIELD_LATER,
        ("keep_a_while", "self.look_later(r, r.delay)"): YIELD_LATER,
        ("contend", "for weight in self.tally.values():"): BY_INQUIRY,
        ("contend", "if winners < self.k:"): BY_INQUIRY,
        ("contend", "if weight >= self.needed:"): BY_INQUIRY,
        ("contend", "for r in self.resp:"): BY_INQUIRY,
        ("contend", "winners += 1"): BY_INQUIRY,
        ("contend", "if weight + unheard >= self.needed:"): YIELD_EARLY,
        ("contend", "if r.grant and self.may_yield(r):"): BY_INQUIRY,
        ("contend", "return"): YIELD_EARLY,
        ("contend", "self.give_back(r)"): BY_INQUIRY,
        ("may_yield", "return r.delay == 0 or self.now >= r.hold"): BY_INQUIRY,
        ("give_back", "r.wanted = False"): TIDY,
        ("give_back", "r.due = NEVER"): ASKED_EARLY,
        ("look_at_one", "if self.probing:"): PROBE_SILENT,
        ("look_at_one", "if not self.inside:"): YIELD_LATER,
        ("look_at_one", "r = self.resp[(r.i + 1) % len(self.resp)]"): PROBE_SILENT,
        ("look_at_one", "return"): NO_VOTE,
        ("look_at_one", "self.contend()"): YIELD_LATER,
        ("on_request", "if m.probe and self.clock > m.ts:"): PROBE_QUEUED,
        ("on_request", "return"): PROBE_QUEUED,
        ("is_known", "if w.life == m.life and m.ts <= w.ts:"): SHORTER_LEASE,
        ("is_known", "rep.remove(w)"): TWICE_WAITING,
        ("is_known", "return False"): FALSY,
        ("again", "if age > w.age:"): SHORTER_LEASE,
        ("again", "if self.is_ahead(rep, w) or self.is_overdue(rep):"): AT_LEASE_END,
        ("again", "self.inquire(rep)"): AT_LEASE_END,
        ("is_overdue", "return self.now - rep.busy_since > 2 * (rep.Tcs if rep.Tcs else self.resend)"): AT_LEASE_END,
        ("on_release_message", "if w is not None and w.life == m.life and (w.ts <= m.ts):"): TWICE_WAITING,
        ("on_release_message", "return"): NOT_BOTH,
        ("on_release_message", "rep.remove(w)"): TWICE_WAITING,
        ("free", "rep.busy_since = self.now if rep.Queue and self.resend else NEVER"): ROUGH_TCS,
        ("vote", "if rep.busy_since == NEVER and self.resend:"): ROUGH_TCS,
        ("vote", "rep.busy_since = self.now"): ROUGH_TCS,
        ("on_yield", "if rep.Cowner != w.client:"): ASKS_WITHOUT_TW,
        ("on_yield", "self.tell_waiter(rep, w)"): ASKS_WITHOUT_TW,
    },
    "non_e2e": {
        ("ask", "ask.heard = False"): ONLY_FAULTS,
        ("forget", "self.asks = NO_ASKS"): TIDY,
        ("forget", "self.cancel_timer('again')"): NOTHING_ASKED,
        ("on_grantreq", "ask.holder = m.holder"): LITERAL_ONLY,
        ("count_votes", "self.cancel_timer('again')"): ASKS_INSIDE,
        ("count_votes", "self.wait_for_votes()"): HOOK,
        ("somebody_wins", "return most_held(self.asks, self.me) >= self.terms.quorum"): LITERAL_ONLY,
        ("yield_votes", "self.set_timer('again', self.delay * eighths // SHARES)"): BY_LATER_VOTE,
        ("yield_votes", "self.wait_for_votes()"): HOOK,
        ("give_vote_back", "ask.attempt += self.terms.attempts"): LATE_VOTE,
        ("give_vote_back", "ask.holder = NIL"): LITERAL_ONLY,
        ("ask_again", "self.delay = min(2 * self.delay, self.terms.longest)"): SAME_DELAY,
        ("may_be_lost", "return False"): FALSY,
        ("pass_request", "if is_of(entry, m) and self.terms.attempts:"): ASKED_ONCE,
        ("pass_request", "if src == entry.next:"): DISAGREE,
        ("pass_request", "return None"): FALSY,
        ("pass_request", "entry.next = next_hop"): ASKED_ONCE,
        ("pass_request", "if src != self.me:"): ASKED_ONCE,
        ("pass_request", "return m"): ASKED_ONCE,
        ("pass_request", "return Request(self.gate, self.keys[m.replica], m.replica, m.asked, True)"): DISAGREE,
        ("pass_request", "entry.previous = src"): ASKED_ONCE,
        ("pass_gathering", "if entry.next != next_hop:"): OLD_WAY,
        ("pass_gathering", "if m.over and entry.queue:"): TWICE_WAITING,
        ("pass_gathering", "self.out.send(entry.next, onward)"): OLD_WAY,
        ("pass_gathering", "self.take_out(entry.queue, m)"): TWICE_WAITING,
        ("on_range", "for entry in in_order(self.first):"): PATH_MOVED,
        ("on_range", "if is_between(self.keys[entry.replica], start, end):"): PATH_MOVED,
        ("on_range", "self.out.send(entry.next, self.clean_up(entry))"): PATH_MOVED,
        ("on_range", "self.dissolve(entry, False)"): PATH_MOVED,
        ("on_leave", "for entry in in_order(self.first):"): PATH_MOVED,
        ("on_leave", "for peer in sorted({entry.previous, entry.next} - {self.me}):"): PATH_MOVED,
        ("on_leave", "self.dissolve(entry, True)"): PATH_MOVED,
        ("on_leave", "self.out.send(peer, news)"): PATH_MOVED,
        ("on_skip", "if entry is not None and holder_of(entry) == (m.ts, m.node, m.attempt):"): PATH_MOVED,
        ("on_skip", "skip(entry, src, m)"): PATH_MOVED,
        ("dissolve", "self.drop_entry(entry.replica)"): PATH_MOVED,
        ("dissolve", "for asked in entry.queue or ():"): PATH_MOVED,
        ("dissolve", "self.route_again(entry.replica, asked, past)"): PATH_MOVED,
        ("route_again", "self.door.route(Request(self.gate, self.keys[number], number, asked, past))"): PATH_MOVED,
        ("on_request", "if is_same(replica.owner, asked):"): OWN_QUEUED,
        ("on_request", "self.tell_owner(m.replica, replica)"): NO_LOSS,
        ("on_request", "return"): OWN_QUEUED,
        ("on_gathering", "self.take_out(replica.queue, m)"): TWICE_WAITING,
        ("take_out", "for at in range(len(queue) - 1, -1, -1):"): TWICE_WAITING,
        ("take_out", "if self.is_own(m, queue[at]):"): TWICE_WAITING,
        ("take_out", "del queue[at]"): TWICE_WAITING,
        ("hand_over", "self.give_replica(number)"): MOVED_RARELY,
        ("on_handover", "self.vote(m.replica, replica)"): MOVED_RARELY,
        ("on_handover", "self.took_owner(m.replica)"): HOOK,
        ("start_clock", "self.ahead = clock - self.now"): AFTER_LOAD,
    },
}
