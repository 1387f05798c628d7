"""A secret that the peers of a cluster share, for TCP without TLS: every user of a host can connect to its ports.

Both sides prove that they know the secret before anything else is said, and neither reveals it:

    dialling side  -> accepting   ("challenge", a random number)
    accepting side -> dialling    ("challenge", another random number, its proof)
    dialling side  -> accepting   ("proof", its proof)

A proof is an HMAC of both random numbers, the name of the cluster, the side that proves, and, between loopback
addresses, the two addresses. So it is of no use on any other connection: it cannot be replayed, reflected to the side
that made it, or relayed by a process that listens on the port of a peer that is down.

Nothing is encrypted. On the loopback interface only root can read or change what is sent.
"""

import hmac
import ipaddress
import os
import secrets
from pathlib import Path
from typing import Any

from fairgate.errors import BadInput
from fairgate.net.codec import CodecError, Frame, encode
from fairgate.net.private_files import check_private

VARIABLE = "FAIRGATE_SECRET"
CHALLENGE, PROOF = "challenge", "proof"
NUMBER_BYTES = 32
SHORTEST, LONGEST = 16, 4096  # bytes of a secret
DIALS, ACCEPTS = "dials", "accepts"
WRONG = "it does not know this cluster's secret, or its cluster has another name"
NOT_PROVED = "this cluster has a secret, and it sent no proof that it knows it"


class Secret:
    def __init__(self, key: bytes) -> None:
        self.key = key

    def __repr__(self) -> str:
        return "Secret(...)"


def load(path: str | os.PathLike[str]) -> Secret:
    """Reads the secret from a file. BadInput unless the file has 16 to 4096 bytes, and is readable by its owner only.

    A newline at the end does not count, so that the file can be written with an editor.
    """
    path = Path(path)
    check_private(path)
    try:
        with path.open("rb") as file:
            key = file.read(LONGEST + 2).removesuffix(b"\n")
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    if not SHORTEST <= len(key) <= LONGEST:
        raise BadInput(
            f"{path} has {len(key)} bytes, and a secret has {SHORTEST} to {LONGEST}: create one with"
            " `fairgate keys secret`"
        )
    return Secret(key)


def from_environment() -> Secret | None:
    """The secret in the file that the environment variable FAIRGATE_SECRET names; None if it is not set."""
    path = os.environ.get(VARIABLE)
    return load(path) if path else None


def create(path: Path) -> None:
    """Creates a file with a random secret. BadInput if it exists or cannot be written."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{secrets.token_hex(NUMBER_BYTES)}\n")
    except OSError as wrong:
        hint = ": remove it first, or use another name" if isinstance(wrong, FileExistsError) else ""
        raise BadInput(f"cannot create {path}: {wrong.strerror}{hint}") from wrong


class Proving:
    """The exchange on one connection, seen from one side."""

    def __init__(self, secret: Secret, cluster: str, side: str, addresses: tuple[Any, Any]) -> None:
        """`addresses` are those of the dialling and of the accepting side."""
        self.secret = secret
        self.about = (cluster, *loopback_addresses(addresses))
        self.side = side
        self.ours = secrets.token_bytes(NUMBER_BYTES)
        self.theirs = b""
        self.done = False

    def begin(self) -> Frame:
        """The first frame of the dialling side."""
        return (CHALLENGE, self.ours)

    def answer(self, frame: Frame) -> Frame:
        """The next frame to send; empty if there is none. Unproved if the other side's proof is not valid."""
        kinds = [type(part) for part in frame[1:]]
        if self.side == ACCEPTS and not self.theirs and frame[:1] == (CHALLENGE,) and kinds == [bytes]:
            self.heard(frame[1])
            return (CHALLENGE, self.ours, self.proof(ACCEPTS))
        if self.side == DIALS and frame[:1] == (CHALLENGE,) and kinds == [bytes, bytes]:
            self.heard(frame[1])
            self.check(ACCEPTS, frame[2])
            return (PROOF, self.proof(DIALS))
        if self.side == ACCEPTS and self.theirs and frame[:1] == (PROOF,) and kinds == [bytes]:
            self.check(DIALS, frame[1])
            return ()
        raise Unproved(NOT_PROVED)

    def heard(self, number: bytes) -> None:
        if len(number) != NUMBER_BYTES:
            raise CodecError(f"expected a number of {NUMBER_BYTES} bytes")
        self.theirs = number

    def check(self, side: str, proof: bytes) -> None:
        if not hmac.compare_digest(proof, self.proof(side)):
            raise Unproved(WRONG)
        self.done = True

    def proof(self, side: str) -> bytes:
        """What the given side sends to prove that it knows the secret."""
        numbers = (self.ours, self.theirs) if self.side == DIALS else (self.theirs, self.ours)
        return hmac.digest(self.secret.key, encode(("fairgate", side, *numbers, *self.about)), "sha256")


class Unproved(Exception):
    """The other side does not know the secret; the text is the reason to refuse it."""


def loopback_addresses(addresses: tuple[Any, ...]) -> list[str]:
    """The addresses as text; nothing if they are not those of this host, which other hosts may see differently."""
    hosts = [ipaddress.ip_address(address[0]) for address in addresses]
    hosts = [getattr(host, "ipv4_mapped", None) or host for host in hosts]
    if not all(host.is_loopback for host in hosts):
        return []
    return [f"{host} {address[1]}" for host, address in zip(hosts, addresses, strict=True)]
