"""What a gate counts at one peer."""

from __future__ import annotations

from fairgate.live.counts import Counts


def test_waits_of_very_many_entries_add_up_exactly() -> None:
    counts = Counts()
    wait = (1 << 62) + 1
    for _ in range(9):
        counts.entered(wait)
    assert counts.waited == 9 * wait > 1 << 65
    assert (counts.entries, counts.longest) == (9, wait)
