"""Sigma with zones: SG section VII. Every member of the DHT votes with its share of the circle, its zone.

Theory of operation. A request goes to all members, and a client with m/n of the circle wins. Members come and go, so a
vote is counted by its share, never by heads. A RESPONSE says which share its member votes with. k+1 winners would need
more than the whole circle, so some place would count for two clients at a time. The rule that prevents this:

    A member votes with the part of its zone that it has served for longer than any lease (`hold_time`).

A place that changes hands may have been lent by the member that served it before. That member lends it no more, and
when the new one begins to, all leases of the old one are over. The rule covers members that join, members that inherit
the zone of one that left or failed, and members that lost their memory. None of them knows what was lent before. A
member that hears of a gate for the first time waits as well, because it cannot tell these cases apart. The rest of its
zone does not wait when a member gains some part. When it loses a part it stops lending that at once.

The overlay must move a place from one member to the next without an overlap: settled rings do so by their nature,
dynamic ones by titles (overlay/titles.py).

Clients know the members of the setup to begin with. An answer contains the zone. A client forgets other members that it
believed to be in that zone, and asks the owner of any gap between two zones: that is how it finds members that joined.
"""

from fairgate.core.about import About
from fairgate.core.declare import Id, Place, message, node, record
from fairgate.core.ids import NIL
from fairgate.core.kbr import members_of
from fairgate.core.keyspace import clockwise, is_between, place_of
from fairgate.core.setup import Setup
from fairgate.protocols.sigma.protocol import Sigma
from fairgate.protocols.sigma.strawman import BALLOT
from fairgate.protocols.sigma.votes import Ballot, Replica, Resp, Response, quorum_of

ZONE_BITS = 24  # low bits dropped from shares of the circle, so that their sums stay below 2^63
WHOLE = 1 << (64 - ZONE_BITS)  # the weight of the circle
ROUNDING = 1 << 20  # each zone loses up to two units, so all zones together may have this much less


@message("sg.zone_response")
class ZoneResponse(Response):
    """RESPONSE of a member that votes with its zone, (start, end]."""

    share: int  # the weight of the part that it votes with
    start: Place
    end: Place


@record
class Zone:
    """What a client knows of a member's zone."""

    place: Place  # the key by which the member is found
    start: Place
    end: Place
    share: int


def zone_ballot(setup: Setup) -> Ballot:
    """The places of the members in the setup, sorted. Their weights are not known before they answer."""
    ballot: Ballot | None = setup.shared.get("zone_ballot")
    if ballot is None:
        places = tuple(sorted([place_of(member) for member in members_of(setup)]))
        needed = min(quorum_of(setup, WHOLE), WHOLE - ROUNDING)
        ballot = setup.shared["zone_ballot"] = Ballot(places, (0,) * len(places), WHOLE, needed)
    return ballot


@node
class SigmaZones(Sigma):
    zoned = True
    about = About(
        name="sigma_zones",
        paper="SG section VII",
        kind="quorum",
        cost="4 per member",
        survives=("crash", "reset", "loss", "duplication"),
        open_membership=True,
        options={**BALLOT},
    )

    zones: list[Zone] = []  # in the same order as `resp`: by place
    # The zone of this node as distances from its own place, in units of 2^24 places.
    back: int = 0  # what it votes with
    ahead: int = 0
    whole_back: int = 0  # what it serves
    whole_ahead: int = 0

    def initialize(self, setup: Setup) -> None:
        Sigma.initialize(self, setup)
        if not self.lease:
            raise ValueError("sigma_zones needs leases: a member that joins waits until those before it are over")

    def find_ballot(self, setup: Setup) -> Ballot:
        return zone_ballot(setup)

    # A member: which part of its zone it votes with.

    def replica(self, i: int) -> Replica:
        """A member has one vote, whichever number the client has given to it."""
        if not self.replicas:
            self.see_zone()
        return Sigma.replica(self, 0)

    def see_zone(self) -> None:
        """The zone may have changed. A part that is lost is not lent any more; a part that is new must wait."""
        start: Place
        end: Place
        back: int = 0
        ahead: int = 0
        here: Place = place_of(self.me)
        zone: tuple[int, ...] = self.door.zone()
        if zone:
            start = zone[0]
            end = zone[1]
            back = WHOLE if start == end else clockwise(start, here) >> ZONE_BITS
            ahead = 0 if start == end else clockwise(here, end) >> ZONE_BITS
        grown: bool = back > self.whole_back or ahead > self.whole_ahead
        self.whole_back = back
        self.whole_ahead = ahead
        self.back = min(self.back, back)
        self.ahead = min(self.ahead, ahead)
        if grown:
            self.wait_out_leases()

    def wait_out_leases(self) -> None:
        """Vote with the whole zone when all leases on it that others may have lent are over."""
        self.set_timer("zone", self.hold_time)

    def vote_with_all(self) -> None:
        """Vote with the whole zone, and tell the owner of the vote that it is worth more now."""
        rep: Replica
        self.back = self.whole_back
        self.ahead = self.whole_ahead
        for rep in self.replicas.values():
            if rep.Cowner != NIL:
                self.tell_owner(rep)

    def on_timer(self, name: str) -> None:
        if name == "zone":
            self.vote_with_all()
        else:
            Sigma.on_timer(self, name)

    def on_range(self, start: Place, end: Place) -> None:
        if self.replicas:
            self.see_zone()

    def on_tables(self) -> None:
        if self.replicas:
            self.see_zone()

    def on_crash(self, peer: Id) -> None:
        if self.replicas:
            self.see_zone()

    def played(self) -> list[tuple[int, int]]:
        """Votes do not move: a member that takes over a part of the zone waits until they have expired."""
        return []

    def response(
        self, rep: Replica, client: Id, life: int, ts: int, age: int, grant: int, wait: int, wanted: bool
    ) -> Response:
        start: Place = place_of(self.me)
        end: Place = start
        zone: tuple[int, ...] = self.door.zone()
        if zone:
            start = zone[0]
            end = zone[1]
        return ZoneResponse(
            self.gate, place_of(client), rep.i, client, life, ts, age,
            self.me, self.life, self.seq, grant, rep.Cowner, rep.Towner, self.clock, wait, wanted,
            self.late(rep) if grant else 0,
            self.back + self.ahead, start, end,
        )  # fmt: skip

    # A client: which members there are, and what their votes are worth.

    def meet_voters(self) -> None:
        self.zones = [Zone(place, place, place, 0) for place in self.voters]
        Sigma.meet_voters(self)

    def weigh(self) -> None:
        r: Resp
        zone: Zone
        for r in self.resp:
            zone = self.zones[r.i]
            r.key = zone.place
            r.weight = zone.share

    def on_zone_response(self, m: ZoneResponse) -> None:
        self.on_response(m)

    def record_of(self, m: Response) -> Resp:
        place: Place = place_of(m.node)
        i: int = self.rank(place)
        if not self.is_at(i, place):
            return self.add(i, place)
        r: Resp = self.resp[i]
        return r

    def key_of_voter(self, m: Response) -> Place:
        return place_of(m.node)

    def take(self, r: Resp, m: Response) -> None:
        answer: ZoneResponse = m  # type: ignore[assignment]
        zone: Zone = self.zones[r.i]
        zone.start = answer.start
        zone.end = answer.end
        self.forget_inside(r)
        Sigma.take(self, r, m)
        self.close_gap(self.resp[r.i - 1], r)
        self.close_gap(r, self.resp[(r.i + 1) % len(self.resp)])

    def count(self, r: Resp, m: Response, grant: int) -> None:
        answer: ZoneResponse = m  # type: ignore[assignment]
        zone: Zone = self.zones[r.i]
        self.uncount(r)  # with the former weight
        zone.share = answer.share
        r.weight = answer.share
        Sigma.count(self, r, m, grant)

    def forget_inside(self, r: Resp) -> None:
        """Forget members that cannot exist, because their place is in the zone of another one that has answered."""
        step: int
        other: Resp
        zone: Zone = self.zones[r.i]
        for step in (-1, 1):
            while True:
                other = self.resp[(r.i + step) % len(self.resp)]
                if other is r or not is_between(other.key, zone.start, zone.end) or self.still_counts(other):
                    break
                self.forget(other)

    def still_counts(self, r: Resp) -> bool:
        return r.grant != 0 and r.until > self.now

    def forget(self, r: Resp) -> None:
        self.out.note("a member is gone")
        self.uncount(r)
        if r.seq:
            self.answered -= 1
        del self.resp[r.i]
        del self.zones[r.i]
        self.renumber()

    def close_gap(self, before: Resp, after: Resp) -> None:
        """If there are keys between the zones of two neighbours that have both answered, ask who owns them."""
        first: Zone = self.zones[before.i]
        second: Zone = self.zones[after.i]
        if before.seq == 0 or after.seq == 0 or first.end == second.start:
            return
        if is_between(second.start, first.start, first.end):
            return  # they overlap: one of them has died, and its vote still counts
        i: int = self.rank(second.start)
        if is_between(second.start, first.end, second.place) and not self.is_at(i, second.start):
            self.out.note("a member that joined is asked")
            self.ask_again(self.add(i, second.start))

    def rank(self, place: Place) -> int:
        """The index of the first known member at or after this place."""
        zone: Zone
        low: int = 0
        high: int = len(self.zones)
        middle: int
        while low < high:
            middle = (low + high) // 2
            zone = self.zones[middle]
            if zone.place < place:
                low = middle + 1
            else:
                high = middle
        return low

    def is_at(self, i: int, place: Place) -> bool:
        if i == len(self.zones):
            return False
        zone: Zone = self.zones[i]
        return zone.place == place

    def add(self, i: int, place: Place) -> Resp:
        r: Resp = Resp(i, NIL, NIL)
        r.key = place
        self.resp.insert(i, r)
        self.zones.insert(i, Zone(place, place, place, 0))
        self.renumber()
        return r

    def renumber(self) -> None:
        r: Resp
        i: int
        for i, r in enumerate(self.resp):
            r.i = i


@node
class SigmaZonesLiteral(SigmaZones):
    """A member votes with its whole zone at once, as SG describes it. For comparison (papers/sigma.md)."""

    about = About(
        name="sigma_zones_literal",
        paper="SG section VII",
        kind="quorum",
        cost="4 per member",
        literal=True,
        options={**BALLOT},
    )

    def wait_out_leases(self) -> None:
        self.vote_with_all()
