"""A protocol's description of itself: its paper, its cost, and the capabilities that drivers rely on."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class About:
    name: str
    paper: str  # key of the paper (FK, SG, EE, RF); authors and year for any other paper
    kind: str  # token, permission or quorum
    cost: str  # messages per entry
    survives: tuple[str, ...] = ()  # crash, reset, loss, duplication; a limit may follow: "crash of a client"
    many: bool = True  # is k > 1 allowed?
    slots: bool = False  # do grants carry a slot and a rising fence?
    serves_in_order: bool = False  # does it serve waiters in the order of the members?
    open_membership: bool = False
    detectors: tuple[str, ...] = ()  # classes of failure detectors that it uses
    literal: bool = False  # follows the paper to the letter: only the options listed in `options` apply
    symmetric: bool = False  # it never compares ids by size, so the checker may rename peers (check/symmetry.py)
    ids: dict[str, tuple[int, ...]] = field(
        default_factory=dict
    )  # if symmetric: positions of ids in the node's key (under "key"), and in each message, by tag
    options: dict[str, Any] = field(default_factory=dict)  # name -> default, or a tuple of choices, default first
