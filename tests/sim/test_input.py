"""Input of the simulator: faults and configurations, parsed or refused in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fairgate.core.units import SECOND
from fairgate.errors import BadInput
from fairgate.registry import LAYERS
from fairgate.sim.build import build
from fairgate.sim.config import Config
from fairgate.sim.faults import Faults, parse_faults


def test_faults_are_parsed() -> None:
    text = "crash:3@100, crash:*2@10+5, reset:1@7+2, loss:0.05, dup:.01, reorder:0.2, partition:0-1.5/2@60+30, detect:3"
    faults = parse_faults(text, 6)
    assert faults.crashes == [(3, 100 * SECOND)]
    assert faults.random_crashes == [(2, 10 * SECOND, 5 * SECOND)]
    assert faults.resets == [(1, 7 * SECOND, 2 * SECOND)]
    assert faults.partitions == [(frozenset([0, 1, 5]), frozenset([2]), 60 * SECOND, 90 * SECOND)]
    assert (faults.loss, faults.dup, faults.reorder, faults.detect) == (0.05, 0.01, 0.2, (3 * SECOND, 3 * SECOND))
    assert faults.kinds() == ["crash", "reset", "loss", "duplication"]
    assert parse_faults("detect:0.5-3", 6).detect == (SECOND // 2, 3 * SECOND)
    assert parse_faults("", 6) == Faults()
    assert Faults().kinds() == []


DETECT = "detect must be a time in seconds, or a shorter and a longer one such as 1-5"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "fire:1",
            "unknown fault 'fire': choose from crash, reset, partition, detect, loss, dup, reorder, drift, doubt,"
            " distrust, trust",
        ),
        ("crash:1", "cannot read crash:1: write it as crash:3@100, crash:*5@100+50 or crash:20%@600"),
        ("crash:9@1", "there is no node 9: nodes are 0..4"),
        ("crash:*5@1", "crash:*5 is too many for 5 nodes: at most 4 can crash"),
        ("crash:1@5+3", "a crash is permanent: write crash:1@5, or reset:1@5+3 for a node that comes back"),
        ("reset:x@1", "cannot read reset:x@1: write it as reset:3@100+10"),
        ("reset:*2@1", "cannot read reset:*2@1: write it as reset:3@100+10"),
        ("partition:0/1", "cannot read partition:0/1: write it as partition:0-4/5-9@60+30"),
        ("partition:-/1@1", "cannot read the group '-': write it as 0-4 or 0.2.7"),
        ("partition:0-2/2-4@1", "node 2 is on both sides of partition:0-2/2-4@1"),
        ("partition:0/7@1", "there is no node 7: nodes are 0..4"),
        ("loss:2", "loss must be a share between 0 and 1, not '2'"),
        ("dup:nan", "dup must be a share between 0 and 1, not 'nan'"),
        ("reorder:", "reorder must be a share between 0 and 1, not ''"),
        ("detect:soon", f"{DETECT}, not 'soon'"),
        ("detect:-1", f"{DETECT}, not '-1'"),
        ("detect:5-1", f"{DETECT}, not '5-1'"),
        ("distrust:2", "distrust must be a share between 0 and 1, not '2'"),
        ("trust:inf", "trust must be a time in seconds, not 'inf'"),
    ],
)
def test_nonsensical_faults_are_refused_in_one_line(text: str, line: str) -> None:
    with pytest.raises(BadInput) as wrong:
        parse_faults(text, 5)
    assert str(wrong.value) == line


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"protocol": "fairk"}, "there is no protocol 'fairk': did you mean fair_k?"),
        ({"protocol": "zzz"}, "there is no protocol 'zzz': `fairgate protocols` lists them"),
        (
            {"stack": ("tin can",)},
            f"there is no layer 'tin can': choose from {', '.join(LAYERS)}",
        ),
        ({"nodes": 0}, "nodes must be at least 1, not 0"),
        ({"k": 6}, "k must be 1..5 (the number of nodes), not 6"),
        ({"k": 0}, "k must be 1..5 (the number of nodes), not 0"),
        (
            {"protocol": "maekawa"},
            "maekawa lets one in at a time: use k=1, or a protocol for k > 1 such as fair_k",
        ),
        ({"rate": 0}, "rate must be above 0 requests per second, not 0"),
        ({"rate": float("nan")}, "rate must be above 0 requests per second, not nan"),
        ({"cs": -1}, "cs must be 0 or more seconds, not -1"),
        ({"requests": 0}, "requests must be at least 1, not 0"),
        ({"warmup": 200}, "warmup must be 0..199 (below requests), not 200"),
        ({"give_up": 2.0}, "give_up is SHARE:SECONDS with a share between 0 and 1 and more than 0 seconds"),
        ({"workload": "mad"}, "workload must be closed, open or rounds, not 'mad'"),
        ({"workload": "rounds", "askers": 6}, "askers must be 1..5 (the number of nodes), not 6"),
    ],
)
def test_a_nonsensical_config_is_refused_in_one_line(change: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as wrong:
        build(replace(Config(nodes=5, k=2), **change))
    assert str(wrong.value) == line
