"""What every node of a gate knows before it starts."""

from typing import Any

Options = dict[str, Any]

FENCE_COUNT_BITS = 32


class Setup:
    """Members, k, who is the root, the epoch of the fences, and the protocol's own options.

    One object serves all nodes of a run. It never changes, so it is not part of a node's key.
    """

    def __init__(
        self,
        members: tuple[int, ...],
        k: int = 1,
        root: int | None = None,
        epoch: int = 0,
        options: Options | None = None,
    ) -> None:
        if not members:
            raise ValueError("a gate needs at least one member")
        if not 1 <= k <= len(members):
            raise ValueError(f"k must be 1..{len(members)} (the number of nodes), not {k}")
        self.members = members
        self.k = k
        self.root = members[0] if root is None else root
        self.epoch = epoch
        self.options = dict(options or {})
        self.shared: dict[Any, Any] = {}  # what nodes would all work out alike from the rest, kept once for all of them
        self.holders = {member: slot for slot, member in enumerate(members[:k])}  # where the tokens start
        if self.root not in members:
            raise ValueError(f"the root {root} is not a member")

    @property
    def n(self) -> int:
        return len(self.members)

    @property
    def first_fence(self) -> int:
        """Fences are epoch above, count below: a new epoch is past every fence of the old one."""
        return self.epoch << FENCE_COUNT_BITS

    def describe(self) -> dict[str, Any]:
        """For a journal's header; `Setup.of` reads it back."""
        first, last = self.members[0], self.members[len(self.members) - 1]
        dense = self.members == tuple(range(first, last + 1))
        return {
            "members": f"{first}..{last}" if dense else list(self.members),
            "k": self.k,
            "root": self.root,
            "epoch": self.epoch,
            "options": self.options,
        }

    @classmethod
    def of(cls, described: dict[str, Any]) -> "Setup":
        members = described["members"]
        if isinstance(members, str):
            first, last = members.split("..")
            members = range(int(first), int(last) + 1)
        return cls(tuple(members), described["k"], described["root"], described["epoch"], described["options"])
