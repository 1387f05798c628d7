"""Mutants of agreed rosters (recovery/views.py and what it builds on): each breaks one rule, and must be caught.

The judge of each is an exhaustive case (check/rosters.py), the walk with this seed (walks/rosters.py), or a test.
"""

from __future__ import annotations

from functools import partial

import pytest

from fairgate.recovery.agreed import Nack
from tests.mutants.rosters import Edit, Judge, mutated, verdict
from tests.recovery import test_changes, test_exclusion, test_membership, test_valid_messages
from tests.recovery.peers import trio

one_of_two_goes = partial(test_exclusion.test_one_of_two_peers_that_cannot_reach_each_other_goes, 1, 3)
member_is_not_believed = partial(test_valid_messages.test_a_roster_is_taken_from_voters_only, 3)


def forged_vote_is_refused() -> None:
    try:
        trio().do(0, "on_message", 3, Nack(1, (99, 3)))
    except ValueError:
        return
    raise AssertionError("a vote of a member without a vote was taken")


RULES: dict[str, tuple[Judge, str, list[Edit]]] = {
    "acknowledges whom it has excluded": (26, "lease", [("leases", " and (src, m.joined) in names(latest)\n", "\n")]),
    "acknowledges by what was chosen, not accepted": (
        "one leader excludes",
        "lease",
        [("leases", "        latest = self.latest()\n", "        latest = self.value\n")],
    ),
    "knows members by id alone": (
        test_exclusion.test_an_id_that_is_let_in_again_gives_its_first_member_no_lease,
        "test",
        [
            ("leases", "(src, m.joined) in names(latest)\n", "src in ids(latest)\n"),
            ("changes", "(mine is None or mine[1] != self.joined)", "mine is None"),
        ],
    ),
    "a lease counts from its acknowledgement": (
        0,
        "lease",
        [
            (
                "leases",
                "self.acked[src] = max(self.acked.get(src, self.sent[m.number]), self.sent[m.number])",
                "self.acked[src] = self.now",
            )
        ],
    ),
    "gen ignored": ("a voter was replaced", "lease", [("leases", "m.gen == latest[0] and ", "")]),
    "a new leader skips phase 1": (
        34,
        "agreement",
        [
            (
                "ballots",
                "            self.prepare()\n\n    def prepare",
                "            self.phase = LEAD\n            self.serve()\n\n    def prepare",
            )
        ],
    ),
    "a leader forgets what was accepted": (
        2,
        "agreement",
        [
            (
                "ballots",
                "            if value[0]:\n                self.inherit",
                "            if False:\n                self.inherit",
            )
        ],
    ),
    "the lowest ballot wins": (
        186,
        "agreement",
        [("ballots", "max(self.promises.values())", "min(self.promises.values())")],
    ),
    "promises are not kept": (28, "liveness", [("ballots", "if ballot < self.promised:", "if ballot < NO_BALLOT:")]),
    "a leader who is told goes on": (
        "five voters, and a leader that is told",
        "agreement",
        [
            (
                "ballots",
                "        self.step_down()\n        self.follow(at, value)",
                "        self.follow(at, value)",
            )
        ],
    ),
    "a ballot outlives its voters": (
        "voters are added",
        "agreement",
        [
            ("ballots", "        if value[0] != before[0]:\n            self.step_down()\n", ""),
            ("ballots", "                self.prepare()  # other", "                pass  # other"),
        ],
    ),
    "what was accepted counts as chosen": (
        "a rival goes on",
        "agreement",
        [("views", " and m.ballot == self.accepted:", " and self.accepted_value[0]:")],
    ),
    "half is a majority": (0, "agreement", [("agreed", "len(voters) // 2 + 1", "max(len(voters) // 2, 1)")]),
    "no wait": (2, "lease", [("changes", "self.now + wait) for", "self.now) for")]),
    "the wait counts from proposing": (
        "one leader excludes",
        "lease",
        [
            (
                "ballots",
                "        self.proposal = value\n        self.accepts",
                "        self.proposal = value\n        for one in value[3]:\n"
                "            self.waits.setdefault(one, self.now + self.wait)\n        self.accepts",
            )
        ],
    ),
    "no allowance for drift": (
        30,
        "lease",
        [("ballots", "self.lease + (self.lease * self.drift + MILLION - 1) // MILLION", "self.lease")],
    ),
    "the least that is left": (7, "lease", [("ballots", "max(self.accepts.values())", "min(self.accepts.values())")]),
    "a new voter knows of nothing left": (
        7,
        "lease",
        [
            (
                "leases",
                "[max(self.heard[name].when, self.since) if name in self.heard else self.since for name in lost]",
                "[self.heard[name].when for name in lost if name in self.heard]",
            )
        ],
    ),
    "to let in gives nothing": (
        3,
        "lease",
        [("leases", "                self.heard[name] = Heard(self.now)\n", "                pass\n")],
    ),
    "a newcomer's lease counts from hearing of it": (
        72,
        "lease",
        [("changes", "self.until = self.asked + self.lease", "self.until = self.now + self.lease")],
    ),
    "a leader need not vote": (
        test_membership.test_only_a_leader_that_votes_keeps_others_from_taking_over,
        "test",
        [("leases", "!= self.me and src in voters:", "!= self.me:")],
    ),
    "the leader watches itself": (
        test_membership.test_a_leader_that_was_told_of_a_version_takes_over_again,
        "test",
        [("leases", "if src == self.promised[1] != self.me and", "if src == self.promised[1] and")],
    ),
    "nothing is repeated": (17, "liveness", [("views", "            self.repeat()\n", "")]),
    "a peer that is behind is not told": (
        17,
        "liveness",
        [
            (
                "views",
                "            self.tell(src, Chosen(self.at, self.value))\n        elif",
                "            pass\n        elif",
            )
        ],
    ),
    "a change is made again": (
        22,
        "once",
        [
            (
                "changes",
                "            if number <= last:\n                continue\n            if number != last + 1 or",
                "            if",
            )
        ],
    ),
    "refusals are not recorded": (
        0,
        "outcome",
        [
            (
                "changes",
                "                refused = (*refused, (number, str(why)[:LONGEST_REASON]))",
                "                pass",
            )
        ],
    ),
    "a refused change refuses all": (
        0,
        "liveness",
        [
            (
                "changes",
                "                refused = (*refused, (number, str(why)[:LONGEST_REASON]))",
                "                return value",
            )
        ],
    ),
    "a refusal is dropped before it is known": (
        test_changes.test_a_refusal_stays_in_the_roster_until_the_asker_knows_it,
        "test",
        [("changes", "refusal[0] >= changes[0][0]", "refusal[0] > changes[0][0]")],
    ),
    "changes disturb a census": (
        13,
        "census",
        [
            (
                "changes",
                "            if number != last + 1 or self.must_wait(content, peer, change):",
                "            if number != last + 1:",
            )
        ],
    ),
    "departures disturb a census": (
        25,
        "census",
        [
            (
                "changes",
                " or not self.next_voters(rest) or self.must_wait(content, name[0], ()):",
                " or not self.next_voters(rest):",
            )
        ],
    ),
    "newcomers disturb a census": (
        32,
        "census",
        [("changes", "        if self.must_wait(content, newcomer, ()):\n            return value\n", "")],
    ),
    "forgetting disturbs a census": (
        0,
        "census",
        [
            (
                "changes",
                "        if self.must_wait(content, name[0], ()):\n            return value\n"
                "        self.touch(content, name[0], ())\n        rest = tuple([other",
                "        self.touch(content, name[0], ())\n        rest = tuple([other",
            )
        ],
    ),
    "an old beat says that a census is over": (
        11,
        "census",
        [("changes", " or self.heard[name].at < self.viewed.get(gate, self.leads_from)", "")],
    ),
    "a leader forgets which gates it gave views": (
        11,
        "census",
        [("changes", "self.viewed | dict.fromkeys(self.touched, self.at)", "self.viewed")],
    ),
    "a new leader believes old beats": (242, "census", [("changes", "            self.leads_from = self.at\n", "")]),
    "an inherited proposal touches nothing": (
        131,
        "census",
        [("changes", "        self.leads_from = self.at + 1\n", "")],
    ),
    "exclusions wait for a census": (
        3,
        "liveness",
        [
            (
                "changes",
                "        if not self.next_voters(rest):\n            return value\n",
                "        if not self.next_voters(rest) or self.must_wait(content, name[0], ()):\n"
                "            return value\n",
            )
        ],
    ),
    "voters may be even": (0, "voters", [("changes", "len(best) - 1 + len(best) % 2", "len(best)")]),
    "any number of voters": (
        test_membership.test_there_are_at_most_seven_voters,
        "refused",
        [("changes", "min(MOST_VOTERS, len(best) - 1 + len(best) % 2)", "len(best) - 1 + len(best) % 2")],
    ),
    "all members may vote": (
        4,
        "voters",
        [("changes", " for member in members if member[2]}", " for member in members}")],
    ),
    "a newcomer votes before its first beat": (
        37,
        "liveness",
        [("changes", "self.heard[name].at >= name[1] and ", "")],
    ),
    "voters need not have been heard": (
        test_membership.test_a_leader_that_hears_nobody_proposes_nothing,
        "test",
        [
            (
                "changes",
                "return tuple(wanted) if len(there.intersection(wanted)) >= majority(tuple(wanted)) else ()",
                "return tuple(wanted)",
            )
        ],
    ),
    "nobody may be excluded without voters": (
        test_membership.test_a_leader_that_hears_nobody_proposes_nothing,
        "test",
        [("changes", "        if not self.next_voters(rest):\n            return value\n", "")],
    ),
    "a voter leaves at once": (
        67,
        "leaving",
        [("leases", "return self.is_succeeded or len(know) >= majority(self.value[1])", "return True")],
    ),
    "witnesses of an earlier version": (
        67,
        "leaving",
        [
            ("leases", "if self.witnesses.get(voter, 0) >= self.at]", "if voter in self.witnesses]"),
        ],
    ),
    "those that leave must ask": (
        test_membership.test_peers_that_leave_at_once_wait_for_nobody,
        "test",
        [("ballots", "        self.tell_those_that_left(before)\n", "")],
    ),
    "a version without it proves that a voter is not needed": (
        test_membership.test_a_voter_that_leaves_stays_until_a_majority_of_the_next_voters_has_answered,
        "test",
        [("changes", "not self.is_listed() and self.me not in before[1]", "not self.is_listed()")],
    ),
    "a later version proves nothing": (
        test_membership.test_a_version_after_one_without_it_proves_that_a_peer_is_not_needed,
        "test",
        [("changes", "self.is_succeeded = self.gone and not self.is_listed() and self.me not in before[1]", "pass")],
    ),
    "an earlier version that arrives late proves nothing": (
        test_membership.test_a_version_after_one_without_it_proves_that_a_peer_is_not_needed,
        "test",
        [("changes", "            self.told_late(src, m)\n", "            pass\n")],
    ),
    "a stranger tells what was chosen before": (
        test_membership.test_a_version_after_one_without_it_proves_that_a_peer_is_not_needed,
        "test",
        [("changes", " and src in self.last_voters and ", " and ")],
    ),
    "silence is forgiven": (
        23,
        "liveness",
        [("leases", "if not self.lately(name) or self.is_suspected(name[0])]", "if self.is_suspected(name[0])]")],
    ),
    "a leader has no patience": (
        test_membership.test_a_new_leader_has_patience_anew,
        "test",
        [
            (
                "leases",
                "max(self.heard[name].when, self.led) if name in self.heard else self.led",
                "self.heard[name].when if name in self.heard else 0",
            )
        ],
    ),
    "a newcomer that is refused is asked for again": (
        test_membership.test_a_refused_newcomer_is_told_why,
        "test",
        [("changes", "        self.newcomers.pop(newcomer, None)\n", "")],
    ),
    "waits are forgotten": (
        7,
        "lease",
        [("changes", "{name: self.waits.get(name, self.now + wait) for", "{name: self.now + wait for")],
    ),
    "one voter's suspicion is enough": (
        test_exclusion.test_what_one_voter_suspects_is_not_enough,
        "test",
        [("leases", "and len(accusers) >= majority(self.value[1])", "and accusers != []")],
    ),
    "complaints are ignored": (
        one_of_two_goes,
        "test",
        [("leases", "        for accuser, accused in self.complaints():\n", "        for accuser, accused in ():\n")],
    ),
    "the accused goes, whoever accuses": (
        test_exclusion.test_a_peer_that_accuses_everybody_goes_itself,
        "test",
        [("leases", "max(accuser, accused, key=self.worth_excluding)", "accused")],
    ),
    "suspicions are stored": (
        test_exclusion.test_what_one_voter_suspects_is_not_enough,
        "test",
        [("leases", "        heard.suspects = {peer: known", "        heard.suspects = known | {peer: known")],
    ),
    "any member's roster is believed": (
        member_is_not_believed,
        "test",
        [
            (
                "changes",
                "return src in self.value[1] or (silent and src in ids(self.value))",
                "return src in ids(self.value)",
            )
        ],
    ),
    "a newcomer believes anybody": (
        test_valid_messages.test_a_newcomer_believes_its_contact_only,
        "test",
        [("changes", "            return src == self.contact\n", "            return True\n")],
    ),
    "votes are taken from anybody": (
        forged_vote_is_refused,
        "test",
        [("views", " and src not in self.value[1]:", " and src < 0:")],
    ),
    "an id that lingers is let in": (
        test_membership.test_the_same_id_is_not_let_in_while_it_lingers,
        "test",
        [("changes", " or newcomer in [peer for peer, _ in lingering]:", ":")],
    ),
    "a peer that leaves is let in again": (
        test_membership.test_a_late_introduction_does_not_let_a_peer_in_again_that_leaves,
        "test",
        [
            (
                "changes",
                "        if m.newcomer in ids(self.value):\n            return",
                "        if False:\n            return",
            )
        ],
    ),
    "a beat denies censuses of versions that its sender has not been told of": (
        1_009_185,
        "census",
        [("views", "news and not self.is_ahead()", "news")],
    ),
    "new members are not believed": (1_010_725, "liveness", [("changes", " or self.has_voted_for(src, m)", "")]),
    "complaints count however old they are": (
        test_exclusion.test_complaints_that_were_not_repeated_lately_do_not_count,
        "test",
        [("leases", "heard is None or (self.patience and self.now - heard.when > self.patience):", "heard is None:")],
    ),
    "changes may be skipped": (
        test_changes.test_a_change_out_of_order_waits,
        "test",
        [("changes", "if number != last + 1 or self.must_wait", "if self.must_wait")],
    ),
    "a leader that leaves hands nothing over": (
        test_membership.test_a_leader_that_leaves_hands_over_without_a_wait,
        "test",
        [("changes", "            self.hand_over()\n", "")],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_mutant_is_caught(rule: str) -> None:
    judge, expected, edits = RULES[rule]
    with mutated(*edits) as views:
        assert verdict(views, judge) == expected
