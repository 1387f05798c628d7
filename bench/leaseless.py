"""`fairgate peer` without leases: `python -m bench.leaseless peer ...`, only to measure what leases cost.

Users of such a peer may stay inside without limit, so a cluster of them is not safe. The beats by which the peers agree
on the roster go on, at a quarter of their rate: joining waits for some of them.
"""

from __future__ import annotations

from fairgate.arguments import SECOND
from fairgate.cli import main
from fairgate.live import engine, views_driver
from fairgate.live.peer_lease import PeerLease

UNLIMITED = 0


class NoLease(PeerLease):
    def raised(self, until: int, end: int) -> None:
        self.owner.traffic.lease_until = UNLIMITED


if __name__ == "__main__":
    engine.PeerLease = NoLease  # type: ignore[attr-defined]
    views_driver.SLOWEST_BEAT = SECOND
    main()
