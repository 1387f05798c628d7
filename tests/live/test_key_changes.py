"""Keys that change while peers run: the deny list, and another authority."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairgate import sync
from fairgate.errors import BadInput
from fairgate.net import denied, key_rotation, keys, transport
from fairgate.net.address import TcpAddress
from fairgate.net.keys import read_certificates
from tests.live.commands import Say
from tests.live.peers import SOON, Peer, close_all, lines, run, until

HERE = "127.0.0.1"
HOSTS = ("one", "two")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "KEYS_SECONDS", 0.02)


class Hosts:
    """The directory of the authority, and one for each host with copies of its files."""

    def __init__(self, folder: Path) -> None:
        self.office = folder / "office"
        self.folder = folder
        keys.init(self.office)
        for host in (*HOSTS, "three"):
            keys.add(self.office, host, [HERE])
            (folder / host).mkdir(0o700)
            self.copy("ca.crt", host)
            self.copy(f"{host}.crt", host)
            self.copy(f"{host}.key", host)

    def copy(self, name: str, *hosts: str) -> None:
        for host in hosts or (*HOSTS, "three"):
            fresh = self.folder / host / "fresh"
            shutil.copy(self.office / name, fresh)
            fresh.replace(self.folder / host / name)


@pytest.fixture
def hosts(tmp_path: Path) -> Hosts:
    return Hosts(tmp_path)


# The deny list.


def test_a_denied_key_is_refused_without_a_restart(hosts: Hosts, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        one, two = (Peer(number, tls=keys.load(hosts.folder / host)) for number, host in enumerate(HOSTS, 1))
        dial = two.transport.dial(one.transport.listen(TcpAddress(HERE, 0)))
        await one.until("up", 2)
        keys.deny(hosts.office, "two")
        hosts.copy("denied", "one")  # the thief's host does not get it
        assert (await one.until("down", 2))[2] == transport.DENIED
        await until(lambda: dial.why == f"it refused: {transport.DENIED}")
        assert [told[0] for told in one.told] == ["up", "down"]
        await close_all(one, two)

    run(main())
    assert [line for line in lines(caplog.records) if line.startswith("refused 127.0.0.1")]


def test_a_denied_listener_is_not_dialled(hosts: Hosts) -> None:
    keys.deny(hosts.office, "one")
    hosts.copy("denied", "two")

    async def main() -> None:
        one, two = (Peer(number, tls=keys.load(hosts.folder / host)) for number, host in enumerate(HOSTS, 1))
        dial = two.transport.dial(one.transport.listen(TcpAddress(HERE, 0)))
        await until(lambda: dial.why == transport.DENIED)
        assert one.told == two.told == []
        await close_all(one, two)

    run(main())


def test_the_deny_list(hosts: Hosts, say: Say) -> None:
    office = str(hosts.office)
    assert denied.read(hosts.office) == frozenset()
    assert say("keys", "deny", "two", "--dir", office)[0] == 0
    assert say("keys", "deny", "two", "--dir", office)[0] == 0  # again
    assert say("keys", "deny", "ab" * 32, "--dir", office)[0] == 0
    assert len(denied.read(hosts.office)) == 2
    hosts.copy("denied")
    with pytest.raises(BadInput, match=r"two\.crt is on the deny list: create another key"):
        keys.load(hosts.folder / "two")
    keys.load(hosts.folder / "one")
    for name, words in (("nobody", "does not exist"), ("ca", "an authority cannot be denied")):
        code, _, err = say("keys", "deny", name, "--dir", office)
        assert (code, err.count("\n"), words in err) == (2, 1, True)
    (hosts.office / "denied").write_text("no fingerprint\n")
    with pytest.raises(BadInput, match="line 1: expected a fingerprint"):
        denied.read(hosts.office)


# Owners and modes.


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        (".", 0o770, "can be changed by other users"),
        ("ca.crt", 0o666, "can be changed by other users"),
        ("one.crt", 0o664, "can be changed by other users"),
        ("one.key", 0o640, "can be read by other users"),
        ("denied", 0o646, "can be changed by other users"),
    ],
)
def test_files_that_others_can_change_are_refused(hosts: Hosts, name: str, mode: int, words: str) -> None:
    folder = hosts.folder / "one"
    keys.deny(hosts.office, "two")
    hosts.copy("denied", "one")
    keys.load(folder)
    (folder / name).chmod(mode)
    with pytest.raises(BadInput, match=words) as refused:
        keys.load(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["ca.key", "ca.crt"])
def test_files_of_the_authority_are_checked_too(hosts: Hosts, name: str) -> None:
    (hosts.office / name).chmod(0o666)
    with pytest.raises(BadInput, match="by other users"):
        keys.add(hosts.office, "four")


def test_changed_files_that_cannot_be_used_change_nothing(hosts: Hosts, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        tls = keys.load(hosts.folder / "one")
        one, two = Peer(1, tls=tls), Peer(2, tls=keys.load(hosts.folder / "two"))
        before = tls.server
        (hosts.folder / "one" / "one.crt").write_text("half a certificate")
        await until(lambda: "the old ones stay in use" in caplog.text)
        assert tls.server is before
        two.transport.dial(one.transport.listen(TcpAddress(HERE, 0)))
        await one.until("up", 2)
        hosts.copy("one.crt", "one")
        await until(lambda: tls.server is not before)
        await close_all(one, two)

    run(main())
    assert len([line for line in lines(caplog.records) if "stay in use" in line]) == 1


# Another authority.


def test_steps_of_a_rotation_in_the_wrong_order(hosts: Hosts, say: Say) -> None:
    def step(name: str) -> str:
        code, _, err = say("keys", "rotate", name, "--dir", str(hosts.office))
        assert (code, err.count("\n")) == ((2, 1) if err else (0, 0))
        return err

    assert "use begin, hosts or end" in step("middle")
    assert "start with `fairgate keys rotate begin`" in step("hosts")
    assert "start with `fairgate keys rotate begin`" in step("end")
    assert step("begin") == ""
    assert "continue with `fairgate keys rotate hosts`" in step("begin")
    assert "run `fairgate keys rotate hosts`" in step("end")
    keys.add(hosts.office, "four")  # still by the old authority, which all hosts accept
    assert step("hosts") == ""
    assert "finish with `fairgate keys rotate end` first" in step("begin")
    assert step("end") == ""
    keys.add(hosts.office, "five")
    assert sorted(path.name for path in hosts.office.glob("ca*")) == ["ca.crt", "ca.key"]
    keys.load(hosts.office, "one")


def test_a_rotation_keeps_keys_and_leaves_denied_hosts_out(hosts: Hosts) -> None:
    principals = {host: keys.principal(hosts.office, host) for host in HOSTS}
    keys.deny(hosts.office, "three")
    before = (hosts.office / "three.crt").read_bytes()
    key_rotation.begin(hosts.office)
    key_rotation.hosts(hosts.office)
    key_rotation.end(hosts.office)
    assert {host: keys.principal(hosts.office, host) for host in HOSTS} == principals
    assert (hosts.office / "three.crt").read_bytes() == before
    assert len(read_certificates(hosts.office / "ca.crt")) == 1


class Load(threading.Thread):
    """A user that enters a gate again and again."""

    def __init__(self, gate: sync.Semaphore) -> None:
        super().__init__(daemon=True)
        self.gate = gate
        self.entries = 0
        self.stopping = False
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopping:
                with self.gate.hold(timeout=SOON) as permit:
                    assert permit.valid
                    self.entries += 1
        except BaseException as wrong:
            self.error = wrong


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_another_authority_under_load(hosts: Hosts) -> None:
    """Between any two copies of files, connections break and come back, and the gate goes on."""
    tls = {host: keys.load(hosts.folder / host) for host in (*HOSTS, "three")}
    old = hosts.folder / "old"
    shutil.copytree(hosts.folder / "three", old)
    old.chmod(0o700)
    with (
        sync.join(listen=f"{HERE}:0", tls=tls["one"]) as one,
        sync.join(one.engine.identity.address, tls=tls["two"]) as two,
    ):
        loads = [Load(peer.lock("report")) for peer in (one, two)]
        for load in loads:
            load.start()

        def moved_over(name: str, host: str) -> None:
            """The host gets the file; then all connections are made anew, and both users enter."""
            before = tls[host].server
            hosts.copy(name, host)
            wait_for(lambda: tls[host].server is not before)
            for connection in list(two.engine.transport.connections):
                two.engine.loop.call_soon_threadsafe(connection.link.abort)
            entries = [load.entries for load in loads]
            wait_for(lambda: all(load.entries > entries[i] + 5 or load.error for i, load in enumerate(loads)))

        key_rotation.begin(hosts.office)
        for host in HOSTS:
            moved_over("ca.crt", host)
        key_rotation.hosts(hosts.office)
        for host in HOSTS:
            moved_over(f"{host}.crt", host)
        key_rotation.end(hosts.office)
        for host in HOSTS:
            moved_over("ca.crt", host)
        for load in loads:
            load.stopping = True
        for load in loads:
            load.join(SOON)
        assert [load.error for load in loads] == [None, None]
        with pytest.raises(BadInput, match=r"cannot join: .*not signed by this cluster's authority"):
            sync.join(one.engine.identity.address, tls=keys.load(old), join_timeout=0.5)
        for name in ("ca.crt", "three.crt"):
            hosts.copy(name, "three")
        three = keys.load(hosts.folder / "three")
        with sync.join(one.engine.identity.address, tls=three) as peer, peer.lock("report") as permit:
            assert permit.valid
