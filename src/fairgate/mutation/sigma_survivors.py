"""Statements of strawman and sigma_zones that can be deleted without breaking safety or liveness, as in survivors.py.

Sigma inherits most of the strawman. The tests named here run Sigma where the strawman does not need the statement.
"""

from fairgate.mutation.dht_survivors import FALSY, TIDY

# strawman.
NO_END_OF_ROUND = "time: no round is given up because of a silent replica (tests/paper/test_strawman.py detects it)"
FIXED_TIMEOUT = "messages: the timeout does not follow the round trips (tests/paper/test_sigma_times.py detects it)"
ANSWER_TO_ANOTHER = (
    "messages: the node refuses an answer to a client that has left; the replica ignores the RELEASE, because this node"
    " has no such request"
)
LATE_ANSWER = (
    "not reached in so few runs: an answer must arrive after a newer one (tests/paper/test_strawman.py detects it)"
)
LATE_OR_OTHERS = (
    "see the two conditions: a late answer (tests/paper/test_strawman.py detects it), or one to a client that has left"
)
NO_ORDER = "not needed here: the strawman serves requests in no order, so a clock need not follow the others"
FOR_SIGMA = "not needed here: only Sigma uses it (tests/paper/test_sigma.py, test_sigma_counting.py)"
LEFT_ALONE = (
    "not needed here: a client that looks at a replica that has answered and not voted for it leaves it alone; Sigma"
    " asks it again (tests/paper/test_sigma_counting.py detects it)"
)
ASKED_TO_VOTE = (
    "not needed here: replicas vote only when they are asked, so no vote crosses its RELEASE after its question was"
    " answered (tests/paper/test_sigma_times.py detects it)"
)
TWO_LIVES = (
    "not reached in so few runs: two incarnations of a replica must answer one question"
    " (tests/paper/test_strawman.py detects it)"
)
REFUSED_FIRST = (
    "not reached in so few runs: a replica must refuse a request and then vote for it"
    " (tests/paper/test_strawman.py detects it)"
)
ENDS_WITH_LEASE = "time: a permit whose votes are lost ends with a lease (tests/paper/test_strawman.py detects it)"
LOST_WITHOUT_LEASE = (
    "not reached: without leases a permit is lost only if replicas lose their memory"
    " (tests/paper/test_strawman.py detects it)"
)
SET_AGAIN = "no effect: `watch` sets the timer each time, to the end of the next lease"
SAME_REQUEST = "no effect: the vote is freed, and lent to the same request again"
OVERTAKEN = "time: a request that overtakes the RELEASE before it is refused (tests/paper/test_strawman.py detects it)"
LOOKS_LATER = "time: a later look replaces an earlier one (tests/paper/test_sigma.py detects it)"
LOOKED_UP_LATER = "time: the next round asks the silent node first, and routes only the second question"
FROM_THE_START = (
    "time: the lease is counted from the start of the request, so it is shorter"
    " (tests/paper/test_sigma_times.py detects it)"
)
NO_WAIT = "not needed here: no question waits at a replica (tests/paper/test_sigma_times.py detects it)"
ENDS_LATER = (
    "time: where a node serves several replicas, a later lease puts off the end of an earlier one"
    " (tests/paper/test_strawman.py detects it)"
)
ZERO = "no effect: without leases the rest of the method returns 0 as well"
REMEMBERED = (
    "time: a replica whose key comes back remembers its former owner until the lease ends"
    " (tests/paper/test_strawman.py detects it)"
)
MOVED = (
    "not reached in so few runs: somebody must depend on a replica that has moved"
    " (tests/paper/test_strawman.py detects it)"
)

# sigma_zones.
TOLD_LATER = (
    "time: a client learns that a vote is worth more when it renews it (tests/paper/test_sigma_zones.py detects it)"
)
ONLY_CRASHES = (
    "not reached: the overlays of these runs announce every new range; `watched` announces crashes alone"
    " (tests/paper/test_sigma_zones.py detects it)"
)
AFTER_LOAD = "not needed here: `weigh` reads the share only after a load (tests/generic/test_law.py detects it)"
OTHER_NEIGHBOUR = (
    "time: only an answer of the other neighbour reveals the gap (tests/paper/test_sigma_zones.py detects it)"
)
STILL_COUNTED = "time: a member that is gone still counts (tests/paper/test_sigma_zones.py detects it)"
OLD_ZONES = "messages: a client also asks about gaps between zones that it knows from earlier requests"

SIGMA_SURVIVORS: dict[str, dict[tuple[str, str], str]] = {
    "strawman": {
        ("begin", "self.started = self.now"): NO_END_OF_ROUND,
        ("is_probe", "return False"): FALSY,
        ("measure", "self.spread = (3 * self.spread + off) // 4"): FIXED_TIMEOUT,
        ("measure", "self.trip = (7 * self.trip + max(took, 0)) // 8"): FIXED_TIMEOUT,
        ("on_response", "if m.client != self.me:"): ANSWER_TO_ANOTHER,
        ("on_response", "self.hear(m.clock)"): NO_ORDER,
        ("on_response", "if self.is_old(r, m):"): LATE_ANSWER,
        ("on_response", "return"): LATE_OR_OTHERS,
        ("spare", "r.due = NEVER"): LEFT_ALONE,
        ("is_released", "return r.over_ts == m.ts and self.now - self.over_at < self.timeout()"): ASKED_TO_VOTE,
        ("is_old", "if m.age == r.age:"): TWO_LIVES,
        ("is_old", "return True"): TWO_LIVES,
        ("is_old", "r.yielded = 0"): FOR_SIGMA,
        ("is_old", "self.forgetful = True"): FOR_SIGMA,
        ("is_old", "self.uncount(r)"): TWO_LIVES,
        ("is_old", "if self.resend:"): TWO_LIVES,
        ("is_old", "self.look_later(r, self.timeout())"): TWO_LIVES,
        ("learn", "if r.seq == 0:"): FOR_SIGMA,
        ("learn", "if self.resend and m.age > r.age:"): FIXED_TIMEOUT,
        ("learn", "r.seq = m.seq"): LATE_ANSWER,
        ("learn", "r.age = m.age"): TWO_LIVES,
        ("learn", "self.answered += 1"): FOR_SIGMA,
        ("learn", "self.measure(self.now - self.started - m.age - m.late)"): FIXED_TIMEOUT,
        ("count", "r.owner = m.owner"): REFUSED_FIRST,
        ("count", "r.owner_ts = m.owner_ts"): FOR_SIGMA,
        ("count", "self.votes += 1"): FOR_SIGMA,
        ("count", "self.tally[m.owner] = self.tally.get(m.owner, 0) + r.weight"): FOR_SIGMA,
        ("uncount", "r.owner = NIL"): TWO_LIVES,
        ("uncount", "r.owner_ts = NIL"): TIDY,
        ("uncount", "r.until = NEVER"): TIDY,
        ("uncount", "self.votes -= 1"): FOR_SIGMA,
        ("uncount", "if r.owner != NIL:"): REFUSED_FIRST,
        ("uncount", "self.heard -= r.weight"): REFUSED_FIRST,
        ("uncount", "if rest:"): FOR_SIGMA,
        ("uncount", "self.tally[r.owner] = rest"): FOR_SIGMA,
        ("judge", "if self.mine < self.needed:"): ENDS_WITH_LEASE,
        ("judge", "self.lose('votes lost')"): ENDS_WITH_LEASE,
        ("watch", "self.permit_at = end"): SET_AGAIN,
        ("lose", "self.release_votes()"): LOST_WITHOUT_LEASE,
        ("end_request", "if self.resend:"): ASKED_TO_VOTE,
        ("end_request", "self.forgetful = False"): FOR_SIGMA,
        ("end_request", "self.started = NEVER"): TIDY,
        ("end_request", "self.tally.clear()"): FOR_SIGMA,
        ("end_request", "self.over_at = self.now"): ASKED_TO_VOTE,
        ("end_request", "for r in self.resp:"): ASKED_TO_VOTE,
        ("end_request", "r.over_ts = self.ts if not r.silent and r.age == r.sent else NIL"): ASKED_TO_VOTE,
        ("on_request", "self.hear(m.ts)"): NO_ORDER,
        ("on_request", "if m.ts == rep.Towner:"): SAME_REQUEST,
        ("on_request", "self.free(rep)"): OVERTAKEN,
        ("look_later", "self.look_at = r.due"): LOOKS_LATER,
        ("look_at_one", "r.node = NIL"): LOOKED_UP_LATER,
        ("hear", "if ts > self.clock:"): NO_ORDER,
        ("hear", "self.clock = ts"): NO_ORDER,
        ("vote", "rep.age = age"): FROM_THE_START,
        ("vote", "rep.asked = asked"): NO_WAIT,
        ("lend", "self.lease_at = rep.until"): ENDS_LATER,
        ("late", "if not self.lease:"): ZERO,
        ("late", "return 0"): ZERO,
        ("free", "rep.grant = 0"): TIDY,
        ("on_range", "for i in sorted(self.replicas):"): REMEMBERED,
        ("on_range", "if not is_between(self.voters[i], start, end):"): REMEMBERED,
        ("on_range", "del self.replicas[i]"): REMEMBERED,
        ("take_replica", "self.draw_life()"): MOVED,
        ("take_replica", "self.replicas[i] = rep"): MOVED,
        ("take_replica", "self.hear(rep.Towner)"): NO_ORDER,
        ("take_replica", "self.seq = max(self.seq, rep.grant)"): MOVED,
        ("take_replica", "if rep.until < self.lease_at:"): MOVED,
        ("take_replica", "self.lease_at = rep.until"): MOVED,
        ("take_replica", "self.set_timer('lease', max(rep.until - self.now, 0))"): MOVED,
        ("end_leases", "self.lease_at = next_end"): ENDS_LATER,
    },
    "sigma_zones": {
        ("vote_with_all", "for rep in self.replicas.values():"): TOLD_LATER,
        ("vote_with_all", "if rep.Cowner != NIL:"): TOLD_LATER,
        ("vote_with_all", "self.tell_owner(rep)"): TOLD_LATER,
        ("on_crash", "if self.replicas:"): ONLY_CRASHES,
        ("on_crash", "self.see_zone()"): ONLY_CRASHES,
        ("weigh", "r.weight = zone.share"): AFTER_LOAD,
        ("take", "self.close_gap(self.resp[r.i - 1], r)"): OTHER_NEIGHBOUR,
        ("take", "self.close_gap(r, self.resp[(r.i + 1) % len(self.resp)])"): OTHER_NEIGHBOUR,
        ("count", "zone.share = answer.share"): AFTER_LOAD,
        ("forget", "self.uncount(r)"): STILL_COUNTED,
        ("forget", "if r.seq:"): STILL_COUNTED,
        ("forget", "self.answered -= 1"): STILL_COUNTED,
        ("close_gap", "if before.seq == 0 or after.seq == 0 or first.end == second.start:"): OLD_ZONES,
        ("close_gap", "return"): OLD_ZONES,
    },
}
