"""Leaving without being gone: this peer ends, and what it let in stays inside as a ghost (net/occupancy.py)."""

from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.on_host import HostMembership
from fairgate.live.ticket import OVER, Ticket
from fairgate.net.members import leave


def can_detach(engine: LiveEngine) -> bool:
    """Between hosts nobody knows of what outlives its peer."""
    return isinstance(engine.membership, HostMembership)


def detach(engine: LiveEngine, gate: LiveGate, ticket: Ticket) -> None:
    """The occupancy of this ticket must have been written. Whatever else this peer holds is lost."""
    with engine.user_lock:
        gate.tickets.pop(ticket.ident, None)  # its node stays inside, and nobody is told of a loss
        ticket.state = OVER
    assert isinstance(engine.membership, HostMembership)
    leave(engine.membership.rule, engine.me, ghosts=True)
    engine.close()  # which tells the others
