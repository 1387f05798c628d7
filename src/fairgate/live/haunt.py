"""Leaving without being gone: this peer ends, and what it let in stays inside as a ghost (net/occupancy.py)."""

from fairgate.errors import BadInput
from fairgate.live.engine import Engine
from fairgate.live.gate import LiveGate
from fairgate.live.host import HostGround
from fairgate.live.ticket import OVER, Ticket
from fairgate.net.access import Access
from fairgate.net.members import leave


def rule_of(engine: Engine) -> Access:
    """Where occupancies are written."""
    if not isinstance(engine.ground, HostGround):
        raise BadInput("what outlives its peer is known on one host only")
    return engine.ground.rule


def stay_as_ghost(engine: Engine, gate: LiveGate, ticket: Ticket) -> None:
    """The occupancy of this ticket must have been written. Whatever else this peer holds is lost."""
    with engine.user_lock:
        gate.tickets.pop(ticket.ident, None)  # its node stays inside, and nobody is told of a loss
        ticket.state = OVER
    leave(rule_of(engine), engine.me, ghosts=True)
    engine.close()  # which tells the others
