"""Ends a peer while the processes that it let in stay inside, as a ghost (net/occupancy.py)."""

from fairgate.live.engine import LiveEngine
from fairgate.live.gate import LiveGate
from fairgate.live.on_host import HostMembership
from fairgate.live.ticket import OVER, Ticket
from fairgate.net.members import leave


def can_detach(engine: LiveEngine) -> bool:
    """True on one host only: between hosts, other peers cannot see processes that outlive their peer."""
    return isinstance(engine.membership, HostMembership)


def detach(engine: LiveEngine, gate: LiveGate, ticket: Ticket) -> None:
    """Closes the engine, but keeps this ticket's slot. Its occupancy file must exist. All other permits are lost."""
    with engine.user_lock:
        gate.tickets.pop(ticket.ident, None)  # its node stays inside, and no loss is reported
        ticket.state = OVER
    assert isinstance(engine.membership, HostMembership)
    leave(engine.membership.rule, engine.me, ghosts=True)
    engine.close()  # this notifies the other peers
