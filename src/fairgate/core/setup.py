"""The configuration that all nodes of a gate share from the start."""

from collections.abc import Sequence
from typing import Any

from fairgate.core.fences import FENCE_COUNT_BITS

Options = dict[str, Any]


class Setup:
    """The members, k, the root, the epoch of the fences, and the protocol's options.

    All nodes of a run share one object. It never changes, so it is not part of a node's key.

    Raises ValueError if there are no members, if k is not in 1..len(members), or if the root is not a member.
    """

    def __init__(
        self,
        members: Sequence[int],
        k: int = 1,
        root: int | None = None,
        epoch: int = 0,
        options: Options | None = None,
    ) -> None:
        if not members:
            raise ValueError("a gate needs at least one member")
        if not 1 <= k <= len(members):
            raise ValueError(f"k must be 1..{len(members)} (the number of nodes), not {k}")
        self.given = members
        self.listed: tuple[int, ...] | None = None
        self.n = len(members)
        self.k = k
        self.root = members[0] if root is None else root
        self.epoch = epoch
        self.options = dict(options or {})
        self.shared: dict[Any, Any] = {}  # a cache for values derived from the setup, which are the same at all nodes
        self.holders = {member: slot for slot, member in enumerate(members[:k])}  # where the tokens start
        if self.root not in members:
            raise ValueError(f"the root {root} is not a member")

    @property
    def members(self) -> tuple[int, ...]:
        """The ids of all members, created on first use: those of 100,000 nodes take 4 MB, and few need them."""
        if self.listed is None:
            self.listed = tuple(self.given)
        return self.listed

    def place(self, member: int) -> int:
        """The index of this member among all. They share a table: searching would take time for each of them."""
        places: dict[int, int] | None = self.shared.get("places")
        if places is None:
            places = self.shared["places"] = {one: place for place, one in enumerate(self.members)}
        return places[member]

    @property
    def first_fence(self) -> int:
        """The fence before the first. The epoch is in the high bits, so fences of a new epoch exceed all older ones."""
        return self.epoch << FENCE_COUNT_BITS

    def describe(self) -> dict[str, Any]:
        """The setup as JSON-compatible data for a journal's header. `Setup.of` is the inverse."""
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
