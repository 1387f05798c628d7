"""Many standing peers in one cluster, each a process: how long joining, leaving, a takeover and a census take.

python -m bench.peers [--peers 64] [--lease 10]

All of them are on this machine, over loopback TCP with a secret, and have a seat at one gate with k=3. One peer enters
the gate again and again meanwhile. Its longest wait shows how long a census stops the gate.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PEER = """
import logging, sys, time
from fairgate import sync

logging.basicConfig(level=logging.WARNING, format="%(message)s")
seed, lease = sys.argv[1:]
began = time.monotonic()
how = {"lease": float(lease)} if not seed else {}
peer = sync.join(*[seed] * bool(seed), listen="127.0.0.1:0", standing=True, join_timeout=120, **how)
print(time.monotonic() - began, peer.engine.identity.address, flush=True)
for line in sys.stdin:
    what, *words = line.split()
    began = time.monotonic()
    if what == "enter":
        peer.semaphore(words[0], k=3).hold(120).release()
    elif what == "watch":  # enters until it is told to stop
        gate, longest = peer.semaphore(words[0], k=3), 0.0
        until = began + float(words[1])
        while (now := time.monotonic()) < until:
            gate.hold(120).release()
            longest = max(longest, time.monotonic() - now)
            time.sleep(0.002)
        print(longest, flush=True)
        continue
    elif what == "leave":
        peer.close()
    print(time.monotonic() - began, flush=True)
    if what == "leave":
        break
"""
GATE = "gpu"


class Peer:
    def __init__(self, folder: Path, seed: str, lease: float) -> None:
        self.log = folder / f"{len(list(folder.glob('*.log')))}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PEER, seed, str(lease)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"FAIRGATE_DIR": str(folder / "gates")},
            )

    def joined(self) -> float:
        took, self.address = self.answer().split()
        return float(took)

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def tell(self, *words: object) -> None:
        assert self.process.stdin is not None
        print(*words, file=self.process.stdin, flush=True)

    def ask(self, *words: object) -> float:
        """How many seconds it took."""
        self.tell(*words)
        return float(self.answer())


def row(what: str, seconds: list[float]) -> None:
    median, worst = statistics.median(seconds), max(seconds)
    print(f"{what:60} {median * 1000:9.1f} ms, at most {worst * 1000:9.1f} ms", flush=True)


def watched(watcher: Peer, what: str, seconds: float, act: list[tuple[Peer, str]]) -> None:
    """What the watcher waits for at most while others do this."""
    watcher.tell("watch", GATE, seconds)
    time.sleep(0.3)
    for peer, word in act:
        if word == "kill":
            peer.process.send_signal(signal.SIGKILL)
        else:
            row(what, [peer.ask(word, GATE)])
    row(f"{what}: longest wait at the gate", [float(watcher.answer())])


def measure(count: int, lease: float, folder: Path) -> None:
    first = Peer(folder, "", lease)
    first.joined()
    peers = [first]
    took = []
    while len(peers) < count:
        peers.append(Peer(folder, first.address, lease))
        took.append(peers[-1].joined())
    row(f"join, one after the other, the last 8 of {count}", took[-8:])
    row("first entry of a peer (a seat, and a census), the last 8", [peer.ask("enter", GATE) for peer in peers][-8:])
    row("entry after that", [peer.ask("enter", GATE) for peer in peers])
    watcher = peers[1]
    watched(watcher, "a peer leaves", 2, [(peers.pop(), "leave")])
    watched(watcher, "a peer that holds nothing is killed", 2, [(peers.pop(), "kill")])
    watched(watcher, "the leader is killed", lease + 3, [(first, "kill")])
    peers.remove(first)
    row("a new gate after that (a change of the roster)", [peers[2].ask("enter", "other")])
    began = time.monotonic()
    for peer in peers:
        peer.tell("leave")
    row(f"{len(peers)} peers leave at once", [float(peer.answer()) for peer in peers])
    for peer in peers:
        peer.process.wait(60)
    print(f"all have ended after {time.monotonic() - began:.1f} s")
    for log in sorted(folder.glob("*.log")):
        for line in set(log.read_text().splitlines()):
            print(f"{log.name}: {line}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    parser.add_argument("--peers", type=int, default=64)
    parser.add_argument("--lease", type=float, default=10.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        secret = folder / "secret"
        secret.touch(0o600)
        secret.write_text(secrets.token_hex(32))
        os.environ["FAIRGATE_SECRET"] = str(secret)
        measure(given.peers, given.lease, folder)


if __name__ == "__main__":
    main()
