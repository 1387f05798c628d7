"""`python -m tests.live.fuzz PROTOCOLS ROLE COUNT SEED`: forged frames for a gate, from a member or from a stranger.

It runs in a process of its own, because a compiled module that goes wrong ends the process. A frame is a mutation of a
real one, or is made up from the declarations of the messages. Whatever it contains, it costs its sender the connection
or nothing at all: no other exception, no endless loop, no broken gate afterwards. Frames of a stranger have no effect
at all, and nobody ever gets in because of them.

A member can forge a token or a permission, or lie in a census. Members are trusted not to: no protocol here survives
that. So a member's frames of these kinds are left out (ROLE member), unless nobody counts who is inside (ROLE traitor).
"""

from __future__ import annotations

import faulthandler
import logging
import random
import sys
from typing import Any, get_type_hints

from fairgate.core.ids import NIL, identity
from fairgate.core.kinds import Kind, kind_of
from fairgate.core.message import KINDS, Message, decode
from fairgate.live.traffic import MESSAGE
from fairgate.net.codec import CodecError, Frame, encode
from fairgate.recovery.census import Dated
from fairgate.registry import find_protocol
from tests.live.fuzz_world import GATE, World

MEMBER, TRAITOR, STRANGER = "member", "traitor", "stranger"
PEERS = 4
ATTACKER = PEERS  # of a member; it also behaves as it should in between
FOREIGN = 999  # the id of a stranger
ODD = (NIL, 0, 1, 2, 3, 7, 63, 64, 255, 65536, 10**6, 10**15, -(10**15), 2**62, 2**63 - 1, -(2**63), True, False)
LEAVES = (*ODD, 2**64 - 1, "", "x", Dated.tag, (), ((),), (0,), (1, 2, 3), b"", b"\0")


class Forger:
    def __init__(self, world: World, role: str) -> None:
        self.world = world
        self.role = role
        self.random = random.Random(world.random.random())
        self.me = FOREIGN if role == STRANGER else ATTACKER
        prefix = {tag.split(".")[0] for tag in tags_of(world)}
        self.tags = [tag for tag in KINDS if tag.split(".")[0] in prefix]

    def frame(self) -> tuple[int, Frame]:
        """A peer to send it to, and the frame."""
        dst, frame = self.real() if self.random.random() < 0.6 and self.world.recorded else self.made_up()
        for _ in range(self.random.choice((0, 1, 1, 2, 4))):
            frame = self.mutated(frame)
        return dst, frame if isinstance(frame, tuple) else (frame,)

    def real(self) -> tuple[int, Frame]:
        """A frame that was sent before, from a seat of the attacker."""
        dst, (kind, name, receiver, _, key) = self.random.choice(self.world.recorded)
        return (dst if dst != self.me else 1), (kind, name, receiver, self.own_seat(), self.now(key))

    def now(self, key: Any) -> Any:
        """A message of the protocol is moved to the current view, or it would be refused as an old one."""
        if len(key) > 1 and key[0] == Dated.tag and self.random.random() < 0.8:
            return (key[0], self.world.view, *key[2:])
        return key

    def own_seat(self) -> int:
        return identity(self.me, self.random.choice((0, 0, 0, 1, 2)))

    def made_up(self) -> tuple[int, Frame]:
        dst = self.random.randrange(1, PEERS + (self.role == STRANGER))
        receiver = self.random.choice(list(self.world.seats) or [identity(dst, 0)])
        dst = self.world.seats.get(receiver, dst)
        key: Any = self.made_up_key(self.random.choice(self.tags))
        if not key[0].startswith("rg."):
            hops = tuple([1 for _ in range(self.random.choice((0, 0, 1, 1, 2)))])
            key = (Dated.tag, self.world.view, hops, key)
        return (dst if dst != self.me else 1), (MESSAGE, GATE, receiver, self.own_seat(), key)

    def made_up_key(self, tag: str) -> Any:
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
            return tuple([self.value(kind.parts[0]) for _ in range(self.random.choice((0, 1, 2, 3, 8)))])
        if kind.is_declared:
            return self.made_up_key(self.random.choice(self.tags))
        return self.random.choice(LEAVES)

    def number(self) -> int:
        known = [*self.world.seats, self.world.view, self.world.view + 1, self.own_seat()]
        return self.random.choice(known) if self.random.random() < 0.6 else self.random.choice(ODD)

    def mutated(self, value: Any) -> Any:
        """The value with one part of it changed."""
        if not isinstance(value, tuple) or not value or self.random.random() < 0.05:
            return self.number() if self.random.random() < 0.5 else self.random.choice(LEAVES)
        at = self.random.randrange(len(value))
        what = self.random.random()
        if what < 0.1:
            return value[:at] + value[at + 1 :]
        if what < 0.2:
            return value[:at] + (value[at],) * 2 + value[at + 1 :]
        return (*value[:at], self.mutated(value[at]), *value[at + 1 :])

    def is_allowed(self, frame: Frame) -> bool:
        """Whether a member may be expected to send it, as far as tokens and censuses are concerned."""
        if self.role != MEMBER:
            return True
        try:
            msg = decode(frame[4])
        except (ValueError, IndexError, TypeError):
            return True
        inner: Message | None = getattr(msg, "inner", None)
        return msg.tag == Dated.tag and inner is not None and self.is_harmless(inner)

    def is_harmless(self, msg: Message) -> bool:
        if find_protocol(self.world.protocol).about.kind == "permission" and not msg.tag.endswith(".request"):
            return False
        return not (msg.tokens() or msg.coordinators() or msg.tag.startswith("rg."))


def tags_of(world: World) -> list[str]:
    """A tag of the protocol's messages, and one of the census."""
    module = find_protocol(world.protocol).__module__.rpartition(".")[0]
    own = [tag for tag, kind in KINDS.items() if kind.__module__.startswith(module) and is_of(kind, world.protocol)]
    return [Dated.tag, *own]


def is_of(kind: type[Message], protocol: str) -> bool:
    bases = find_protocol(protocol).__mro__
    return any(kind.__module__ == base.__module__ for base in bases) or f".{protocol}." in kind.__module__


def attack(protocol: str, role: str, count: int, seed: int) -> str:
    """Sends so many forged frames. Returns a line with what happened; any exception is a bug."""
    k = 2 if find_protocol(protocol).about.many and seed % 2 else 1
    world = World(f"{protocol} {role} {seed}", protocol, k, PEERS)
    for host in world.hosts.values():
        world.acquire(host)
    if role == TRAITOR:
        world.check = lambda: None  # type: ignore[method-assign]
    forger = Forger(world, role)
    world.traitor = forger.me
    refused = sent = 0
    while sent < count:
        for _ in range(3):
            world.act()
        dst, frame = forger.frame()
        if not forger.is_allowed(frame):
            continue
        try:
            data = encode(frame)
        except CodecError:  # deeper or larger than a frame can be
            continue
        sent += 1
        before = world.spoiled
        refused += bool(world.receive(dst, forger.me, data))
        if role == STRANGER:
            assert world.spoiled == before, f"a stranger spoilt the gate with {frame}"
    world.calm_down(ODD)
    return f"{sent} frames, {refused} refused, {world.spoiled} new views, {world.entries} entries"


def main(protocols: str, role: str, count: str, seed: str) -> None:
    faulthandler.enable()
    logging.disable()
    for protocol in protocols.split(","):
        print(f"{protocol}: ", end="", flush=True)
        print(attack(protocol, role, int(count), int(seed)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
