"""Membership on one host: peers meet in a runtime directory, and the kernel reports which of them are dead.

The roster is the members file in that directory (net/members.py).
"""

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
    guarantee = "host"  # permits of a dead peer become free at once, and nothing else is lost

    def __init__(self, engine: "LiveEngine", rule: Access | None = None) -> None:
        self.engine = engine
        self.rule = runtime_folder() if rule is None else rule
        self.dying: set[int] = set()  # dead, but still in the roster

    async def begin(self) -> Members:
        engine = self.engine
        joined = file.join(self.rule)
        transport = Transport(joined.me.id, CLUSTER, engine, elsewhere=engine.on_frame_elsewhere)
        transport.serve(joined.listener)
        engine.becomes(joined.me, transport, Links(transport, engine.lock))
        self.watch = Watch(self.on_death)
        self.ghosts = Ghosts(self.rule.folder, self.ghost_is_over)
        return joined.members

    # The roster. The functions of net/members.py wait for a file lock, so they run in an executor.

    async def change(self, change: Change) -> Members:
        return await beside(lambda: file.make_change(self.rule, change))

    async def look(self) -> Members:
        return await beside(lambda: file.read(self.rule.folder))

    async def check(self) -> Members:
        members, _ = await beside(lambda: file.remove_dead(self.rule))
        return members

    async def leave(self) -> Members:
        """Retries until it works: as long as our seats are in the roster, a census waits for their answers."""
        while True:
            try:
                return await self.leave_once()
            except BadInput as wrong:
                log.warning("cannot leave yet: %s; retrying", wrong)
            await asyncio.sleep(RETRY_SECONDS)

    async def leave_once(self) -> Members:
        def work() -> Members:
            return file.leave(self.rule, self.engine.identity.id)

        try:
            return await beside(work)
        except RuntimeError:  # executors refuse work while the interpreter shuts down
            return work()

    # Called by the engine.

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
        """Announces our roster version: earlier news may have been lost with a previous connection."""
        with self.engine.lock:
            self.engine.links.send(peer, (NEWS, self.engine.members.version))

    def on_down(self, peer: int, why: str) -> None:
        """Frames may be lost. If the peer is alive, the gates that we share with it get new views."""
        if self.engine.members.peer(peer) is not None and not self.engine.closed:
            log.debug("the connection to peer %d broke: %s", peer, why)
            self.engine.insist(partial(self.mend, peer))

    async def mend(self, peer: int) -> None:
        engine = self.engine
        await engine.look()
        known = engine.members.peer(peer)
        if known is None or not is_alive(known.pid, known.started):
            return  # it has left, or `bury` removes it
        with engine.lock:
            engine.links.dial(peer)
            gates = [gate.name for gate in engine.gates.values() if peer in gate.hosts.values()]
        for gate in gates:
            await engine.change(Renew(gate))

    def on_frame(self, peer: int, frame: Frame) -> None:
        if frame[0] != NEWS or [type(part) for part in frame] != [str, int]:
            raise CodecError(f"{frame[0]!r:.20} is not a valid message")
        if frame[1] > self.engine.members.version:
            self.engine.insist(self.engine.look)

    def on_death(self, peer: int) -> None:
        self.dying.add(peer)
        self.engine.insist(partial(self.bury, peer))

    async def bury(self, peer: int) -> None:
        """Removes a dead peer from the roster. All peers notice a death at the same time, and if all of them acted at
        once they would only contend for the file lock. So the first living peer of the roster acts first, and each
        further one only if the dead peer is still listed when its turn comes."""
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
