"""The gates of `fairgate demo`: a waiting room, or a cluster over Unix sockets that runs a protocol."""

from pathlib import Path
from typing import Protocol

from fairgate import sync

K = 3


class DemoGate(Protocol):
    k: int
    keeper: bool  # whether a process has to keep the list of peers (`keep`)
    messages: bool  # whether the processes exchange messages

    def describe(self) -> str:
        """A sentence about how the processes meet."""

    def keep(self) -> sync.Peer: ...

    def join(self) -> sync.Peer: ...

    def open(self, peer: sync.Peer) -> sync.Semaphore: ...


class DemoRoom:
    k = K
    keeper = messages = False

    def __init__(self, folder: Path) -> None:
        import fairgate.room.peer  # noqa: F401, PLC0415 (before the processes are forked, which all need it)

        self.path = folder / "gate"

    def describe(self) -> str:
        return "There is no server: the gate is a file in a temporary directory."

    def keep(self) -> sync.Peer:
        raise NotImplementedError("a room needs no keeper")

    def join(self) -> sync.Peer:
        return sync.join()

    def open(self, peer: sync.Peer) -> sync.Semaphore:
        return peer.semaphore(str(self.path), self.k)


class DemoCluster:
    keeper = messages = True

    def __init__(self, folder: Path, protocol: str) -> None:
        import fairgate.live.threads  # noqa: F401, PLC0415 (as above)
        from fairgate.live.live_protocols import find_live  # noqa: PLC0415

        about = find_live(protocol).about
        self.protocol = about.name
        self.k = K if about.many else 1
        self.seed = f"unix:{folder}/0"

    def describe(self) -> str:
        return (
            f"There is no server: they run the protocol {self.protocol} over Unix sockets in a temporary directory. One"
            " more process keeps the list of peers."
        )

    def keep(self) -> sync.Peer:
        return sync.join(listen=self.seed)

    def join(self) -> sync.Peer:
        return sync.join(self.seed)

    def open(self, peer: sync.Peer) -> sync.Semaphore:
        return peer.semaphore("demo", self.k, self.protocol)


def demo_gate(folder: Path, protocol: str | None) -> DemoGate:
    """BadInput if the protocol does not exist or cannot run live."""
    return DemoRoom(folder) if protocol is None else DemoCluster(folder, protocol)
