"""Journals of the peers of a cluster: `fairgate replay` reproduces every step."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairgate import BadInput
from fairgate.core.message import Message
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.live.gate import SeatOutbox
from fairgate.live.journals import Journal, Recorded
from fairgate.live.live_protocols import live_protocols
from fairgate.live.ticket import Ticket
from fairgate.protocols.naimi_trehel import NaimiTrehel
from fairgate.recovery.regenerate import Regenerate
from fairgate.registry import find_protocol, make_node
from fairgate.trace.journal import Step, read
from fairgate.trace.replay import ReplayError, replay
from tests.live.gates import live
from tests.live.kinds import Kind

SOON = 30


def replayed(path: Path) -> list[Step]:
    header, _ = read(path)
    assert (header.driver, header.stack) == ("net", ("regenerate",))
    return list(replay(path, make_node(header.protocol, header.stack)))


def entries(steps: Sequence[Step]) -> int:
    return sum([effect[0] == "granted" for step in steps for effect in step.effects])


@pytest.mark.parametrize("protocol", live_protocols())
def test_the_journals_of_two_peers(cluster: Kind, tmp_path: Path, protocol: str) -> None:
    k = 2 if find_protocol(protocol).about.many else 1
    files = [tmp_path / "one.ndjson", tmp_path / "two.ndjson"]
    with cluster.sync_join(journal=str(files[0])) as one, cluster.sync_join(journal=str(files[1])) as two:
        first, second = one.semaphore("gpu", k, protocol), two.semaphore("gpu", k, protocol)
        for _ in range(5):
            with first.hold(timeout=SOON):
                if k == 1:
                    assert second.acquire(timeout=0.001) is None
            with second.hold(timeout=SOON):
                pass
        given = [first.statistics().entries, second.statistics().entries]
    assert [entries(replayed(file)) for file in files] == given == [5, 5]


def test_leaving_and_asking_again_is_one_step(cluster: Kind, tmp_path: Path) -> None:
    with cluster.sync_join(journal=str(tmp_path / "j")) as peer:
        lock = peer.lock("report")
        lock.hold(SOON)
        (old,) = live(lock).tickets.values()
        peer.engine.of_user(live(lock), lambda new: live(lock).again(old, new), Ticket())
    steps = replayed(tmp_path / "j")
    assert [step.arguments for step in steps if step.event == "again"] == [(1, 2)]
    assert entries(steps) == 2


def test_a_process_that_joins_again_appends_to_the_same_file(cluster: Kind, tmp_path: Path) -> None:
    """Like a command that was stopped while it waited. The process replaces what the file had before."""
    path = tmp_path / "j"
    path.write_text("of another day\n")
    for _ in range(3):
        with cluster.sync_join(journal=str(path)) as peer, peer.lock("report").hold(SOON):
            pass
    assert entries(replayed(path)) == 3
    path.unlink()
    with cluster.sync_join(journal=str(path)) as peer, peer.lock("report").hold(SOON):
        pass
    assert entries(replayed(path)) == 1


def test_with_a_journal_every_entry_is_recorded(cluster: Kind, tmp_path: Path) -> None:
    """Without a journal, retaken permits would not reach the node."""
    with cluster.sync_join(journal=str(tmp_path / "j")) as peer:
        gate = peer.lock("report")
        for _ in range(10):
            with gate:
                pass
    assert entries(replayed(tmp_path / "j")) == 10


def test_without_a_journal_nodes_are_plain(cluster: Kind) -> None:
    with cluster.sync_join() as peer:
        gate = peer.lock("report")
        with gate:
            (node,) = peer.engine.gates["report"].nodes.values()
            assert type(node) is Regenerate
            assert type(node.out) is SeatOutbox


def test_replay_draws_nodes_with_short_numbers(cluster: Kind, tmp_path: Path) -> None:
    with cluster.sync_join(journal=str(tmp_path / "j")) as one, cluster.sync_join() as two:
        with one.lock("report"):
            pass
        with two.lock("report"):
            pass
    command = [sys.executable, "-m", "fairgate", "replay", str(tmp_path / "j"), "--nodes", "1,2", "--ascii"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SOON, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == "bv95 over regenerate: one peer's nodes, k = 1, from net"
    assert any(re.search(r"\? +\| +1 asks$", line) for line in lines)
    assert any(re.search(r"v +\| +1 has view \d+ of \(1,2\)", line) for line in lines)
    assert [one.engine.me, two.engine.me] == [int(line.rpartition(" ")[2]) for line in lines if "is seat 0" in line]
    assert re.fullmatch(r"\d+ steps replayed: all came out the same", lines[-1])


def test_replay_detects_a_modified_step(cluster: Kind, tmp_path: Path) -> None:
    with cluster.sync_join(journal=str(tmp_path / "j")) as peer, peer.lock("report"):
        pass
    text = (tmp_path / "j").read_text()
    (tmp_path / "j").write_text(text.replace('["granted",1,0,', '["granted",1,1,'))
    with pytest.raises(ReplayError, match="effects"):
        replayed(tmp_path / "j")


def test_several_gates_need_several_files(cluster: Kind, tmp_path: Path) -> None:
    with cluster.sync_join(journal=str(tmp_path / "j")) as peer:
        peer.lock("report")
        with pytest.raises(BadInput, match=r"j is the journal of gate report: put \{gate\} in the name for several"):
            peer.lock("other")
        assert list(peer.engine.gates) == ["report"]
    with cluster.sync_join(journal=str(tmp_path / "{gate}.ndjson")) as peer, peer.lock("a/b"), peer.semaphore("gpu", 2):
        pass
    assert entries(replayed(tmp_path / "a%2Fb.ndjson")) == entries(replayed(tmp_path / "gpu.ndjson")) == 1


def test_a_gate_that_is_opened_again_appends_to_the_same_file(cluster: Kind, tmp_path: Path) -> None:
    with cluster.sync_join(journal=str(tmp_path / "j")) as peer:
        for _ in range(2):
            gate = peer.lock("report")
            with gate:
                pass
            gate.close()
        with pytest.raises(BadInput, match="j is a journal of bv95 with k=1: use another file"):
            peer.semaphore("report", k=2)
    assert entries(replayed(tmp_path / "j")) == 2


def test_an_unwritable_journal_is_reported(cluster: Kind, tmp_path: Path) -> None:
    for path, why in (
        (str(tmp_path / "none" / "j"), "No such file or directory"),
        ("/dev/full", "No space left on device"),
    ):
        with cluster.sync_join(journal=path) as peer, pytest.raises(BadInput) as refused:
            peer.lock("report")
        assert str(refused.value) == f"cannot write the journal {path}: {why}"


def test_a_journal_that_becomes_unwritable_is_abandoned(
    cluster: Kind, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The gate continues without it."""
    os.mkfifo(tmp_path / "j")
    reader = os.open(tmp_path / "j", os.O_RDONLY | os.O_NONBLOCK)
    with caplog.at_level(logging.ERROR), cluster.sync_join(journal=str(tmp_path / "j")) as peer:
        gate = peer.lock("report")
        with gate:
            os.close(reader)
        for _ in range(3):
            with gate.hold(timeout=SOON):
                pass
        assert gate.statistics().entries == 4
    assert [record.getMessage() for record in caplog.records] == [
        f"the journal {tmp_path / 'j'} ends here: Broken pipe"
    ]


KILLED = """
import os, signal, sys
from fairgate import sync
peer = sync.join(sys.argv[2], journal=sys.argv[1])
gate = peer.semaphore("gpu", 2)
for _ in range(50):
    gate.hold().release()
gate.hold()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_journal_is_complete_when_the_process_is_killed(cluster: Kind, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "j"), *cluster.seeds]
    assert subprocess.run(command, timeout=SOON, check=False).returncode == -signal.SIGKILL
    assert entries(replayed(tmp_path / "j")) == 51


class Interrupted(Collected):
    """Raises Ctrl-C while the node sends."""

    def send(self, dst: int, msg: Message) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_step_is_followed_by_a_load(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "j"), "naimi_trehel", 1)
    node = Recorded(2, Setup((2,)), Interrupted(), NaimiTrehel, journal)
    node.wait_for_view()
    with pytest.raises(KeyboardInterrupt):
        node.on_view(5, (1, 2), ())
    node.on_view(6, (2,), ())
    node.on_acquire(1)
    node.on_release(1)
    journal.close()
    steps = replayed(tmp_path / "j")
    assert [step.event for step in steps] == ["load", "load", "view", "acquire", "release"]
    assert entries(steps) == 1
