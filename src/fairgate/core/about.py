"""What a protocol says of itself: its paper, its cost, and the capabilities that drivers follow."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class About:
    name: str
    paper: str  # key of the paper, or the authors where it is not one of the four
    kind: str  # token, permission or quorum
    cost: str  # messages an entry
    survives: tuple[str, ...] = ()  # crash, reset, loss, duplication; or one of these and a limit: "crash of a client"
    many: bool = True  # is k > 1 allowed?
    slots: bool = False  # do grants carry a slot and a rising fence?
    open_membership: bool = False
    detectors: tuple[str, ...] = ()  # classes of failure detectors it listens to
    literal: bool = False  # the paper's text to the letter: of the declared options only those named here apply
    symmetric: bool = False  # it never asks which id is larger, so peers can change names (check/symmetry.py)
    ids: dict[str, tuple[int, ...]] = field(
        default_factory=dict
    )  # then: their places in a "key", and in messages by tag
    options: dict[str, Any] = field(default_factory=dict)  # name -> default, or tuple of choices, first the default
