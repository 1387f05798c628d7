"""One host: peers meet in a runtime directory, the members file is the roster, and the kernel says who is dead."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from fairgate.core.ids import NIL
from fairgate.errors import BadInput
from fairgate.live.background import RETRY_SECONDS
from fairgate.live.ghosts import Ghosts
from fairgate.live.links import Links
from fairgate.net import members as file
from fairgate.net.access import Access
from fairgate.net.codec import CodecError, Frame
from fairgate.net.roster import Change, Members, Renew, Rise
from fairgate.net.runtime import runtime_folder, warn_of_rivals
from fairgate.net.transport import Transport
from fairgate.net.watch import Watch, is_alive

if TYPE_CHECKING:
    from fairgate.live.engine import LiveEngine

NEWS = "news"
TURN_SECONDS = 0.02
CLUSTER = "local"
T = TypeVar("T")

log = logging.getLogger("fairgate.live")


class HostMembership:
    guarantee = "host"  # what the dead had is free at once, and nothing is lost

    def __init__(self, engine: "LiveEngine", rule: Access | None = None) -> None:
        self.engine = engine
        self.rule = runtime_folder() if rule is None else rule
        self.dying: set[int] = set()  # they are dead, and still in the roster

    async def begin(self) -> Members:
        engine = self.engine
        joined = file.join(self.rule)
        transport = Transport(joined.me.id, CLUSTER, engine, elsewhere=engine.on_frame_elsewhere)
        transport.serve(joined.listener)
        engine.becomes(joined.me, transport, Links(transport, engine.lock))
        self.watch = Watch(self.on_death)
        self.ghosts = Ghosts(self.rule.folder, self.ghost_is_over)
        return joined.members

    # The roster. The file's functions wait for a lock, so they run beside the loop.

    async def change(self, change: Change) -> Members:
        return await beside(lambda: file.make_change(self.rule, change))

    async def look(self) -> Members:
        return await beside(lambda: file.read(self.rule.folder))

    async def check(self) -> Members:
        members, _ = await beside(lambda: file.remove_dead(self.rule))
        return members

    async def leave(self) -> Members:
        """Until it is done: while our seats are in the roster a census waits for them, so they must answer as long."""
        while True:
            try:
                return await self.leave_once()
            except BadInput as wrong:
                log.warning("cannot leave yet: %s", wrong)
            await asyncio.sleep(RETRY_SECONDS)

    async def leave_once(self) -> Members:
        def work() -> Members:
            return file.leave(self.rule, self.engine.identity.id)

        try:
            return await beside(work)
        except RuntimeError:  # at the end of a process nothing runs beside any more
            return work()

    # What the engine tells.

    def spread(self, members: Members) -> None:
        hosts = {seat.host for gate in members.gates for seat in gate.seats}
        for other in sorted(hosts - {self.engine.me, NIL}):
            self.engine.links.send(other, (NEWS, members.version))

    def adopted(self, members: Members) -> None:
        me = self.engine.me
        self.dying &= {peer.id for peer in members.peers}
        self.watch.only({peer.id: (peer.pid, peer.started) for peer in members.peers if peer.id != me})
        seats = [(seat, gate.name) for gate in members.gates for seat in gate.seats]
        self.ghosts.watch({seat.ident: gate for seat, gate in seats if seat.ghost and seat.host == me})

    def opened(self, gate: str) -> None:
        warn_of_rivals(self.rule.folder, gate)

    def on_up(self, peer: int) -> None:
        """What we told it before may have been lost with another connection."""
        with self.engine.lock:
            self.engine.links.send(peer, (NEWS, self.engine.members.version))

    def on_down(self, peer: int, why: str) -> None:
        """Frames may be lost. If the peer lives, whatever they were about is made anew."""
        if self.engine.members.peer(peer) is not None and not self.engine.closed:
            log.debug("the connection with peer %d broke: %s", peer, why)
            self.engine.insist(partial(self.mend, peer))

    async def mend(self, peer: int) -> None:
        engine = self.engine
        await engine.look()
        known = engine.members.peer(peer)
        if known is None or not is_alive(known.pid, known.started):
            return  # it left, or whoever buries it does the rest
        with engine.lock:
            engine.links.dial(peer)
            gates = [gate.name for gate in engine.gates.values() if peer in gate.hosts.values()]
        for gate in gates:
            await engine.change(Renew(gate))

    def on_frame(self, peer: int, frame: Frame) -> None:
        if frame[0] != NEWS or [type(part) for part in frame] != [str, int]:
            raise CodecError(f"{frame[0]!r:.20} is nothing a peer says")
        if frame[1] > self.engine.members.version:
            self.engine.insist(self.engine.look)

    def on_death(self, peer: int) -> None:
        self.dying.add(peer)
        self.engine.insist(partial(self.bury, peer))

    async def bury(self, peer: int) -> None:
        """All hear of a death at once. The first of the roster removes the dead and tells the others; if that does not
        come to pass, the next one does. If all did it at once, they would only wait for the file's lock."""
        engine = self.engine
        living = [other.id for other in engine.members.peers if other.id not in self.dying]
        await asyncio.sleep(TURN_SECONDS * living.index(engine.me) if engine.me in living else 0)
        if engine.members.peer(peer) is not None:
            await engine.look()
        if engine.members.peer(peer) is not None:
            await engine.check()

    def ghost_is_over(self, gate: str, ident: int) -> None:
        self.engine.insist(partial(self.engine.change, Rise(gate, (ident,))))

    def close(self) -> None:
        self.watch.close()
        self.ghosts.close()


async def beside(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)
