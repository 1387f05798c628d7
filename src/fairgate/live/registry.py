"""Where the peers of a cluster agree on who is there: the engine's view of it.

Every change gives the roster as it is afterwards. On one host it is the members file, and the dead are known.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from fairgate.net import members as file
from fairgate.net.access import Access
from fairgate.net.roster import Change, Members, Peer

T = TypeVar("T")


class Registry(Protocol):
    async def change(self, change: Change) -> Members: ...

    async def look(self) -> Members:
        """The roster as it is now."""

    async def check(self) -> Members:
        """The roster as it is now, without the dead if it can be known who is."""

    async def leave(self) -> Members: ...


class HostRegistry:
    """The members file. Its functions wait for a lock, so they run beside the loop."""

    def __init__(self, rule: Access, me: Peer) -> None:
        self.rule = rule
        self.me = me

    async def change(self, change: Change) -> Members:
        return await beside(lambda: file.make_change(self.rule, change))

    async def look(self) -> Members:
        return await beside(lambda: file.read(self.rule.folder))

    async def check(self) -> Members:
        members, _ = await beside(lambda: file.remove_dead(self.rule))
        return members

    async def leave(self) -> Members:
        return await beside(lambda: file.leave(self.rule, self.me.id))


async def beside(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)
