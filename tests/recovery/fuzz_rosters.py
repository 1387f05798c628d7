"""`python -m tests.recovery.fuzz_rosters ROLE COUNT SEED`: forged messages about rosters, in a process of its own.

A message that is not valid raises ValueError, which costs its sender the connection; anything else is a bug. Strangers
and members that do not vote can never make peers adopt different rosters. A voter can: members are trusted not to.
"""

from __future__ import annotations

import faulthandler
import random
import sys
from contextlib import suppress
from typing import Any, get_type_hints

from fairgate.core.kinds import Kind, kind_of
from fairgate.core.message import KINDS, Message, decode
from fairgate.recovery.agreed import Join, Value
from tests.recovery.peers import Peers

STRANGER, MEMBER, VOTER = "stranger", "member", "voter"
SENDERS = {STRANGER: 99, MEMBER: 3, VOTER: 2}
ODD = (-1, 0, 1, 2, 3, 7, 99, 10**9, 10**15, -(10**15), 2**62, 2**63 - 1, -(2**63), True)
LEAVES = (*ODD, "", "x", (), ((),), (0,), (1, 2, 3), b"")
MOST_RECORDED = 300


class Rosters(Peers):
    """Peers whose connections break over messages that are not valid."""

    def __init__(self) -> None:
        self.recorded: list[Any] = []
        super().__init__(4, 3)

    def send(self, src: int, dst: int, msg: Message) -> None:
        self.recorded = [*self.recorded[-MOST_RECORDED:], msg.key()]
        super().send(src, dst, msg)

    def do(self, me: int, call: str, *arguments: Any) -> Any:
        with suppress(*[ValueError] * (call == "on_message")):
            return super().do(me, call, *arguments)


class Forger:
    def __init__(self, peers: Rosters, rng: random.Random) -> None:
        self.peers = peers
        self.random = rng
        self.tags = [tag for tag in KINDS if tag.startswith("vw.")]

    def key(self) -> Any:
        real = self.peers.recorded and self.random.random() < 0.6
        key = self.random.choice(self.peers.recorded) if real else self.made_up(self.random.choice(self.tags))
        for _ in range(self.random.choice((0, 1, 1, 2))):
            key = self.mutated(key)
        return key

    def made_up(self, tag: str) -> Any:
        hints = get_type_hints(KINDS[tag], include_extras=True)
        return (tag, *[self.value(kind_of(hint)) for name, hint in hints.items() if name != "tag"])

    def value(self, kind: Kind) -> Any:
        if kind.base is bool:
            return self.random.random() < 0.5
        if kind.base is int:
            return self.number()
        if kind.base is tuple and kind.parts:
            if not kind.any_length:
                return tuple([self.value(part) for part in kind.parts])
            return tuple([self.value(kind.parts[0]) for _ in range(self.random.choice((0, 1, 2, 3)))])
        return self.random.choice(LEAVES)

    def number(self) -> int:
        at = self.peers.nodes[0].at
        return self.random.choice((at, at + 1, 0, 1, 2, 3)) if self.random.random() < 0.6 else self.random.choice(ODD)

    def mutated(self, value: Any) -> Any:
        if not isinstance(value, tuple) or not value or self.random.random() < 0.05:
            return self.number() if self.random.random() < 0.5 else self.random.choice(LEAVES)
        at = self.random.randrange(len(value))
        what = self.random.random()
        if what < 0.2:
            return value[:at] + value[at + 1 :] if what < 0.1 else value[:at] + value[at:][:1] + value[at:]
        return (*value[:at], self.mutated(value[at]), *value[at + 1 :])


def attack(role: str, count: int, seed: int) -> str:
    rng = random.Random(f"{role} {seed}")
    peers = Rosters()
    forger = Forger(peers, rng)
    src = SENDERS[role]
    chosen: dict[int, Value] = {}
    refused = 0
    for number in range(count):
        try:
            msg = decode(forger.key())
        except (ValueError, TypeError):
            refused += 1
            continue
        if not (role == STRANGER and isinstance(msg, Join)):  # the connection decides who may join
            peers.do(rng.choice([me for me in range(4) if me != src]), "on_message", src, msg)
        if number % 10 == 0:
            peers.run(0.01)
        for node in peers.nodes.values():
            if role != VOTER and node.me != src:
                assert chosen.setdefault(node.at, node.value) == node.value, f"two rosters have number {node.at}"
    return f"{role}: {count} messages, {refused} not decoded, {peers.nodes[0].at} versions"


if __name__ == "__main__":
    faulthandler.enable()
    print(attack(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), flush=True)
