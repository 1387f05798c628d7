"""An id belongs to one principal: what the other end of its connection has proved about itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fairgate import sync
from fairgate.net import keys
from fairgate.net.address import Address, TcpAddress, parse_address
from fairgate.net.principal import own_principal
from tests.live.commands import standing
from tests.live.commands import until as until_then
from tests.live.peers import SECRET, Peer, Stranger, close_all, hello, lines, run, until

HOST = "127.0.0.1"
ME = f"unix:{os.geteuid()}:{os.getpid()}"


def test_a_unix_socket_names_the_process(tmp_path: Path) -> None:
    async def main() -> None:
        one, two = Peer(1), Peer(2)
        two.transport.dial(one.listen(tmp_path))
        await one.until("up", 2)
        await two.until("up", 1)
        assert (one.principals, two.principals) == ([(2, ME)], [(1, ME)])
        assert one.transport.up[2].principal == ME
        await close_all(one, two)

    run(main())


def test_tls_names_the_certificate_by_its_key(tmp_path: Path) -> None:
    for host in ("one", "two"):
        keys.init(tmp_path / "keys") if host == "one" else None
        keys.add(tmp_path / "keys", host, [HOST])
    expected = {host: keys.principal(tmp_path / "keys", host) for host in ("one", "two")}

    async def main() -> None:
        one, two = (Peer(n, tls=keys.load(tmp_path / "keys", host)) for n, host in ((1, "one"), (2, "two")))
        two.transport.dial(one.transport.listen(TcpAddress(HOST, 0)))
        await one.until("up", 2)
        await two.until("up", 1)
        assert (one.principals, two.principals) == ([(2, expected["two"])], [(1, expected["one"])])
        await close_all(one, two)

    run(main())
    assert expected["two"].endswith(" two")
    assert len(expected["two"]) == len("cert:") + 64 + len(" two")


class Wary(Peer):
    """Accepts nobody."""

    def may_be(self, peer: int, principal: str) -> bool:
        super().may_be(peer, principal)
        return False


@pytest.mark.parametrize("dials", [True, False], ids=["dials", "accepts"])
def test_a_handler_decides_who_may_have_an_id(dials: bool, tmp_path: Path) -> None:
    async def main() -> None:
        one, two = Wary(1), Peer(2)
        if dials:
            dial = one.transport.dial(two.listen(tmp_path))
        else:
            dial = two.transport.dial(one.listen(tmp_path))
        await until(lambda: "is another process" in dial.why)
        assert one.told == []
        await close_all(one, two)

    run(main())


def test_an_id_that_is_up_cannot_be_taken_over_by_another_principal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The second connection is from the same process, so the first is made to look like another's."""

    async def main() -> None:
        one = Peer(1)
        address: Address = one.listen(tmp_path)
        victim, attacker = await Stranger.at(address), await Stranger.at(address)
        await victim.greet(7)
        await one.until("up", 7)
        one.transport.up[7].principal = "unix:1:1"
        attacker.say(hello(7))
        assert await attacker.answers() == [("refused", "peer 7 is another process")]
        assert one.told == [("up", 7)]
        await victim.close()
        await one.until("down", 7)
        await attacker.close()
        await one.transport.close()

    run(main())
    assert "peer 7 is another process" in lines(caplog.records)[0]


def test_a_member_of_a_unix_cluster_is_the_process_that_joined(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with sync.join(listen=f"unix:{tmp_path}/0") as keeper:
        membership = keeper.engine.membership
        assert membership.may_be(keeper.engine.me, ME)
        assert not membership.may_be(keeper.engine.me, f"unix:{os.geteuid()}:1")
        assert not membership.may_be(keeper.engine.me, f"unix:{os.geteuid() + 1}:{os.getpid()}")
        assert membership.may_be(4711, ME)  # a newcomer


def test_another_member_cannot_take_the_id_of_the_dead_founder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record stays in the roster, since nobody else votes."""
    monkeypatch.setattr("fairgate.live.in_cluster.LEAVE_SECONDS", 0.1)  # without the founder it can only give up
    folder = tmp_path / "keys"
    keys.init(folder)
    for host in ("founder", "member", "thief"):
        keys.add(folder, host, [HOST])
    founder, seed = standing(
        "--create", "--listen", f"{HOST}:0", "--keys", str(folder / "founder.crt"), "--lease", "60"
    )  # fmt: skip
    with sync.join(seed, tls=keys.load(folder, "member")) as member:
        record = next(peer for peer in member.engine.members.peers if peer.address == seed)
        founder.kill()
        founder.communicate()
        until_then(lambda: record.id not in member.engine.transport.up)

        async def main() -> None:
            thief = Peer(record.id, "fairgate", secret=None, tls=keys.load(folder, "thief"))
            dial = thief.transport.dial(parse_address(member.engine.identity.address))
            await until(lambda: thief.told != [] or "is another process" in dial.why)
            assert thief.told == []
            await close_all(thief)

        run(main())
    assert record.principal == keys.principal(folder, "founder")


@pytest.mark.parametrize(("listen", "principal"), [("unix:{}/0", ME), (f"{HOST}:0", "secret")], ids=["unix", "secret"])
def test_a_founder_that_was_restarted_knows_its_principal(listen: str, principal: str, tmp_path: Path) -> None:
    """Saved state has no principals, so that of any version will do."""
    tmp_path.chmod(0o700)
    (tmp_path / "state").mkdir(0o700)
    saved = b'{"cluster":"c0ffee","lease":500000000,"drift":0,"epoch":7,"address":"","addresses":[],"alone":true}'
    (tmp_path / "state" / "cluster.json").write_bytes(saved)
    with sync.join(listen=listen.format(tmp_path), state=str(tmp_path / "state"), secret=SECRET) as founder:
        engine = founder.engine
        assert [(peer.id, peer.principal) for peer in engine.members.peers] == [(engine.me, principal)]
        assert engine.members.cluster == "c0ffee"
        assert not engine.membership.may_be(engine.me, "nothing")


def test_without_tls_all_are_the_same_principal() -> None:
    assert own_principal(over_unix=False, tls=None, secret=None) == "nothing"
