"""Links of a cluster acknowledge messages together, and one timer serves all that is not acknowledged (reliable.py)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from fairgate.live import reliable
from fairgate.live.engine_lock import EngineLock
from fairgate.live.reliable import MOST_OWED, Letter, ReliableLinks
from fairgate.net.codec import Frame
from fairgate.net.rationed_log import LINES
from fairgate.net.transport import Transport
from fairgate.recovery.channel import WINDOW, Ack, Data
from fairgate.recovery.roster import Members, PeerRecord

ME, OTHER, THIRD = 1, 2, 3
HELLO: Frame = ("tell", 0, b"")


class Recorder:
    """A transport whose peers are all up."""

    def __init__(self) -> None:
        self.me = ME
        self.closing = False
        self.dials: list[object] = []
        self.up: dict[int, object] = {}
        self.sent: list[tuple[int, Frame]] = []
        self.news = asyncio.Event()

    def send(self, peer: int, frame: Frame) -> bool:
        self.sent.append((peer, frame))
        self.news.set()
        return True

    async def more(self, count: int) -> list[tuple[int, Frame]]:
        """What was sent, once that is so many frames."""
        while len(self.sent) < count:
            self.news.clear()
            await self.news.wait()
        return self.sent


def run(test: Callable[[Recorder, ReliableLinks, list[Frame]], Awaitable[None]]) -> None:
    async def main() -> None:
        transport = Recorder()
        delivered: list[Frame] = []
        links = ReliableLinks(cast(Transport, transport), EngineLock(), lambda _, frame: delivered.append(frame))
        links.addresses = {OTHER: "unused", THIRD: "unused"}
        await asyncio.wait_for(test(transport, links, delivered), 30)

    asyncio.run(main())


def data(number: int) -> Frame:
    return Data(number, Letter(HELLO)).key()


def test_messages_are_acknowledged_together() -> None:
    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        for number in (1, 2, 3):
            assert links.take(OTHER, data(number))
        assert links.take(THIRD, data(1))
        assert delivered == [HELLO] * 4
        assert not transport.sent
        assert await transport.more(2) == [(OTHER, Ack(3).key()), (THIRD, Ack(1).key())]

    run(test)


def test_many_messages_are_acknowledged_at_once() -> None:
    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        for number in range(1, MOST_OWED + 1):
            assert links.take(OTHER, data(number))
        await asyncio.sleep(0)
        assert transport.sent == [(OTHER, Ack(MOST_OWED).key())]

    run(test)


def test_what_is_not_acknowledged_is_sent_again() -> None:
    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        links.send(OTHER, HELLO)
        links.send(THIRD, HELLO)
        assert links.take(THIRD, Ack(1).key())
        sent = await transport.more(4)
        assert sent == [(OTHER, data(1)), (THIRD, data(1)), (OTHER, data(1)), (OTHER, data(1))]

    run(test)


# What does not come in turn.


def test_a_message_before_its_turn_is_not_kept() -> None:
    """Connections keep the order, and the sender repeats all that was not acknowledged."""

    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        for number in range(2, WINDOW):
            assert links.take(OTHER, data(number))
        assert not delivered
        assert not links.channel.links[OTHER].early
        for number in (1, 2, 3):
            assert links.take(OTHER, data(number))
        assert delivered == [HELLO] * 3
        assert await transport.more(1) == [(OTHER, Ack(3).key())]

    run(test)


def test_ids_that_are_not_members_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliable, "MOST_OUTSIDERS", 4)

    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        links.take(OTHER, data(1))
        transport.up[100] = object()
        for outsider in range(100, 200):
            links.take(outsider, data(1))
        assert list(links.channel.links) == [OTHER, 100, 197, 198, 199]
        links.known(Members(peers=tuple([PeerRecord(peer, "unused", "key") for peer in (100, 199)])))
        for outsider in range(200, 300):
            links.take(outsider, data(1))
        assert list(links.channel.links) == [100, 199, 296, 297, 298, 299]  # the others have left

    run(test)


def test_lines_about_members_that_cannot_be_reached_are_rationed(caplog: pytest.LogCaptureFixture) -> None:
    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        for _ in range(2 * LINES):
            links.tell_of(OTHER, "it does not answer")

    run(test)
    assert len([record for record in caplog.records if "cannot reach peer 2" in record.getMessage()]) == LINES


# What is not acknowledged.


def ring(links: ReliableLinks) -> None:
    """As if every timer of the channel was due."""
    timers = links.channel.timers or {}
    for name in timers:
        timers[name] = 0
    links.ring()


def test_what_was_sent_under_an_old_id_is_not_repeated() -> None:
    """The receiver would take it for messages of the new id, which are numbered anew. So with acknowledgements."""

    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        links.send(OTHER, HELLO)
        assert transport.sent == [(OTHER, data(1))]
        ring(links)
        assert transport.sent == [(OTHER, data(1))] * 2
        links.take(OTHER, data(1))  # to be acknowledged soon
        assert links.owed == {OTHER: 1}
        links.end()
        ring(links)
        links.acknowledge()
        assert len(transport.sent) == 2
        assert not links.channel.timers

    run(test)


def test_a_connection_that_delivers_nothing_is_made_anew() -> None:
    class Connection:
        drops = 0

        def drop(self, why: str) -> None:
            self.drops += 1

    async def test(transport: Recorder, links: ReliableLinks, delivered: list[Frame]) -> None:
        transport.up[OTHER] = connection = Connection()
        links.send(OTHER, HELLO)
        for _ in range(3):
            ring(links)
        await asyncio.sleep(0)
        assert connection.drops == 0
        links.on_up(OTHER)
        links.patience = 500_000_000
        ring(links)  # as if 0.6 s had passed
        await asyncio.sleep(0)
        assert connection.drops == 1
        links.on_up(OTHER)  # the new connection has time of its own
        await asyncio.sleep(0)
        assert connection.drops == 1

    run(test)
