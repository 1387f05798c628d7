"""Mutants of Sigma: without one of its corrections, or with one line wrong, a named property must break.

papers/sigma.md lists the corrections, and what breaks without each.
"""

from __future__ import annotations

import pytest

from fairgate.core.declare import node
from fairgate.protocols.sigma.protocol import Sigma
from fairgate.protocols.sigma.votes import Release, Replica, Request, Resp, Response, Yield
from fairgate.scenario.manual import ManualNetwork
from tests.mutants.dht import CROWDED, DOUBLED, DRIFTING, LEASED, REORDER, first_broken, messages
from tests.mutants.mutate import mutant
from tests.support.dht_walk import Spec
from tests.support.sigma_manual import network_of, reach

SEEDS = 150


class Unnumbered(Sigma):
    """Late RESPONSEs, votes that were given back, and late YIELDs all count."""

    def is_old(self, r: Resp, m: Response) -> bool:
        return False

    def take(self, r: Resp, m: Response) -> None:
        r.yielded = 0
        Sigma.take(self, r, m)

    def is_current(self, rep: Replica, m: Yield) -> bool:
        return m.client == rep.Cowner and m.life == rep.life


class LateResponsesCount(Sigma):
    def is_old(self, r: Resp, m: Response) -> bool:
        return False


@node  # when compiled, only the handlers of a declared class are called
class ReleaseOfAnyRequest(Sigma):
    """A RELEASE frees the vote whatever request it belongs to."""

    def on_release_message(self, m: Release) -> None:
        Sigma.on_release_message(self, Release(m.gate, m.target, m.i, m.client, m.life, 1 << 60))


class GhostsKeepTheirVotes(Sigma):
    def refuse(self, m: Response) -> None:
        pass


class NeverInquires(Sigma):
    def inquire(self, rep: Replica) -> None:
        pass


class DeadVotesCount(Sigma):
    def valid(self, margin: int) -> int:
        return self.whole


class DriftCountsAsWait(Sigma):
    """The replica says how long a question waited on its own clock, which may run faster than the client's."""

    def less_drift(self, waited: int) -> int:
        return waited


class QueuesTwice(Sigma):
    """OnRequest as in figure 6: a client that asks again is queued again."""

    def is_known(self, rep: Replica, m: Request) -> bool:
        return False


class ForgetsNobody(Sigma):
    def forget_served(self) -> None:
        pass


WITHOUT: dict[type[Sigma], tuple[Spec, set[str]]] = {
    Unnumbered: (REORDER, {"k"}),
    LateResponsesCount: (REORDER, {"k", "hang"}),
    ReleaseOfAnyRequest: (REORDER, {"k", "hang"}),
    GhostsKeepTheirVotes: (DOUBLED, {"hang"}),
    NeverInquires: (REORDER, {"hang"}),
    DeadVotesCount: (LEASED, {"k"}),
    DriftCountsAsWait: (DRIFTING, {"k"}),
}


@pytest.mark.parametrize("protocol", WITHOUT)
def test_leaving_out_a_correction_breaks_a_property(protocol: type[Sigma]) -> None:
    spec, expected = WITHOUT[protocol]
    assert first_broken(protocol, spec, SEEDS)[0] in expected


def test_requests_that_are_queued_twice_cost_messages() -> None:
    assert messages(QueuesTwice, DOUBLED, 40) > 1.2 * messages(Sigma, DOUBLED, 40)


def test_owners_that_are_not_forgotten_cost_messages() -> None:
    assert messages(ForgetsNobody, CROWDED, 20) > 1.1 * messages(Sigma, CROWDED, 20)


class Endless(Exception):
    pass


class YieldsAtOnce(Sigma):
    """A vote that comes straight back is yielded again at once, without the doubling delay."""

    times = 0

    def may_yield(self, r: Resp) -> bool:
        return True

    def give_back(self, r: Resp) -> None:
        self.times += 1
        if self.times == 1_000:
            raise Endless
        Sigma.give_back(self, r)


def split(protocol: type[Sigma]) -> ManualNetwork:
    """Nodes 0, 3 and 4 have one vote each, node 0 that of the replica it plays itself. Then the other replicas answer
    node 0."""
    network = network_of(protocol=protocol, clients=2)
    for client, i in ((0, 0), (3, 1), (4, 2)):
        network.acquire(client)
        if client != i:
            reach(network, client, i)
    reach(network, 0, 1, 2)
    return network


def test_without_a_delay_a_node_yields_to_itself_forever() -> None:
    network = split(Sigma)
    network.deliver_all()
    assert list(network.inside) == [0]
    with pytest.raises(Endless):
        split(YieldsAtOnce)


MUTANTS = {
    "a freed replica does not vote for the next in its queue": (
        "        if rep.Queue:\n            self.resp_queue(rep)\n",
        "",
        {"hang"},
    ),
    "votes that were given back still count": (
        "        r.wanted = False\n        self.uncount(r)\n",
        "        r.wanted = False\n",
        {"k", "hang", "storm"},
    ),
    "the last in the queue is served next": (
        "        w: Waiter = rep.Queue[0]\n        rep.remove",
        "        w: Waiter = rep.Queue[len(rep.Queue) - 1]\n        rep.remove",
        {"hang", "storm"},
    ),
    "a client that yields is forgotten": (
        "        rep.insert(w)\n        self.resp_queue(rep)\n        if",
        "        self.free(rep)\n        if",
        {"hang"},
    ),
    "a replica that has voted votes again": (
        "            return\n        if rep.Cowner == NIL:\n            self.vote",
        "            return\n        if not rep.Queue:\n            self.vote",
        {"k"},
    ),
}


def test_a_wait_is_counted_from_the_question_that_the_answer_names() -> None:
    """Without this, the wait of an earlier question is added to the age of a later one, and a lease is too long."""
    old, new = "            w.age = age\n            w.asked = self.arrival()\n", "            w.age = age\n"
    assert first_broken(mutant("protocols.sigma.protocol", old, new).Sigma, DRIFTING, SEEDS)[0] == "k"


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name: str) -> None:
    old, new, expected = MUTANTS[name]
    assert first_broken(mutant("protocols.sigma.protocol", old, new).Sigma, REORDER, SEEDS)[0] in expected
