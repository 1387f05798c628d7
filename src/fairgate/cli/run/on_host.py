"""`fairgate run` with a gate of this host: the room of the gate, and no peer, thread or socket.

The command inherits the bell of its permit. So the slots stay taken until the last process that inherited it has ended,
whatever happens to this process. While this process waits it can be stopped: it keeps its ticket.
"""

from fairgate.cli.exits import complain
from fairgate.cli.run.inside import run_inside
from fairgate.cli.run.nested import NestedPermit, held_after, outer_permit
from fairgate.cli.run.options import Options
from fairgate.command.process import KILLED, Command
from fairgate.command.signals import Interrupted, Signals
from fairgate.errors import BadInput
from fairgate.room.permit import Permit
from fairgate.room.place import locate
from fairgate.room.room import Room

LONGEST_NOTE = 200
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")


def run_on_host(options: Options, program: str) -> int:
    """Wait for a permit and run the command; returns the exit code."""
    signals = Signals()
    try:
        with signals.raised():
            room = Room(*locate(options.gate), options.k)
        with room:
            with signals.raised():
                found = nested(room, options) or ask(room, options)
            if found is None:
                return options.code
            signals.catch_stops()
            permit = HostPermit(room, found, not options.close) if isinstance(found, Permit) else found
            return run_inside(permit, program, options, signals)
    except Interrupted as by:
        return KILLED + by.signum


def nested(room: Room, options: Options) -> NestedPermit | None:
    """The permit with which this process is inside already."""
    outer = outer_permit(room)
    if outer is None:
        return None
    inside = f"this command already runs inside gate {options.gate}"
    if outer.slots:
        inside += f" (slot {', '.join(map(str, outer.slots))})"
    if options.no_nested or options.permits > outer.permits:
        why = "--no-nested was given" if options.no_nested else f"cannot wait for {options.permits} slots as well"
        raise BadInput(f"{inside}, and {why}")
    complain(f"note: {inside}, so it does not wait")
    return NestedPermit(room.gate, outer, options.lease)


def ask(room: Room, options: Options) -> Permit | None:
    timeout = 0 if options.now else options.wait
    return room.acquire(timeout, options.permits, options.lease, note(options.command))


def note(words: list[str]) -> str:
    """The command as one would type it. The module shlex is slow to import."""
    quoted = [word if word and PLAIN.issuperset(word) else "'" + word.replace("'", "'\"'\"'") + "'" for word in words]
    return " ".join(quoted)[:LONGEST_NOTE]


class HostPermit:
    """See `CommandPermit`."""

    def __init__(self, room: Room, permit: Permit, shared: bool) -> None:
        self.permit = permit
        self.gate = room.gate
        self.slots = permit.slots
        self.fence: int | None = permit.fence
        self.deadline = permit.deadline()
        self.held = held_after(room, permit)
        self.shared = shared
        self.wakes = permit.share() if shared else permit.fileno()

    @property
    def look_seconds(self) -> float | None:
        return None

    def hand_to(self, group: int) -> None:
        if self.shared:
            self.permit.hand_to(group)

    def freed_at(self) -> int:
        return 0

    def is_lost(self) -> bool:
        """Tells of the loss."""
        self.permit.rung()
        why = self.permit.why_lost()
        if why:
            which = f" for slot {', '.join(map(str, self.slots))}" if self.slots else ""
            self.tell(f"the permit{which} was lost: {why}")
        return bool(why)

    def tell(self, what: str) -> None:
        complain(f"gate {self.gate}: {what}")

    def before_stop(self) -> None:
        """Nothing: a stopped holder keeps its slots, and the gate goes on."""

    def leave(self, command: Command) -> None:
        if self.shared:
            self.permit.leave_to_command()
        else:
            self.permit.release()
