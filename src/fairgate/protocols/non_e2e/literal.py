"""Non End-to-End to the letter of EE section IV.B, without the corrections of protocol.py. For study only."""

from fairgate.core.about import About
from fairgate.core.declare import node
from fairgate.protocols.non_e2e.protocol import NonE2E


@node
class NonE2ELiteral(NonE2E):
    """EE section IV.B as printed. It can hang, and it can let two in."""

    about = About(
        name="non_e2e_literal",
        paper="EE",
        kind="quorum",
        cost="n(2h+1) alone, h hops to each of n replicas; fewer under load",
        many=False,
        options=NonE2E.about.options,
    )
    from_owner = False
    replicas_vote = False
    asks_again = False
    yield_gathers = False
    by_number = False
    answers_late = False
    attempts = False
    earliest_keeps = False
