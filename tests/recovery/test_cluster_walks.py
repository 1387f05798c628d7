"""Random walks of whole clusters under faults (walks/clusters.py)."""

from __future__ import annotations

import pytest

from fairgate.walks.clusters import RUNNING, cluster_walks

FAULTS = {"crash", "pause", "full cut", "one-way cut", "partial cut", "heal", "join", "leave"}
OUTCOMES = {
    "asked another", "forgotten gates", "grants", "retakes", "cancelled", "versions", "changes", "excluded", "new ids",
    "left", "rests",
    "a slot is withheld", "every slot is withheld",
}  # fmt: skip


def test_clusters_survive_everything_that_can_fail() -> None:
    seen = cluster_walks(range(100))
    assert {*FAULTS, *OUTCOMES, *RUNNING} <= seen.keys()
    assert seen["no majority"] < 10


@pytest.mark.stress
@pytest.mark.parametrize("part", range(10))
def test_many_clusters(part: int) -> None:
    cluster_walks(range(1000 * part, 1000 * (part + 1)))
