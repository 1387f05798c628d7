"""Where everything is in a room: the file is an array of signed 64-bit words.

It has a header, `CAPACITY` slots, as many times until which they are on loan, and the seats. A seat is named by the
index of its first word; 0 is no seat. Words without a name are spare.
"""

from __future__ import annotations

TYPE_CHECKING = False  # see room/__init__.py
if TYPE_CHECKING:
    from typing import Final

# The header.
MAGIC: Final = 0
VERSION: Final = 1
CAPACITY: Final = 2  # slots that there is room for: k can be changed up to this
SEATS: Final = 3
K: Final = 4
NEXT_TICKET: Final = 5
LAST_FENCE: Final = 6
HEAD: Final = 7  # of the queue
TAIL: Final = 8
SPARE: Final = 9  # the first free seat; free seats are linked by NEXT
USED: Final = 10  # slots that are taken
DIRTY: Final = 11  # the derived words may be wrong: see table.py
NUDGED: Final = 12  # when a new head was last told of its duties
BOOT: Final = 13  # which boot of the machine, and which clock (system.boot_id)
STOP: Final = 14  # the process that was continued to finish its change, and stops itself again
GRANTS: Final = 15  # counters for metrics
REBUILT: Final = 16
RESCUED: Final = 17
ASKED_K: Final = 18  # the k that its users ask for; K differs from it after `resize`
LOSSES: Final = 19  # permits that ended before they were released
WAITED: Final = 20  # ns, of all grants together
LONGEST: Final = 21  # ns, the longest wait of a grant
MACHINE: Final = 22  # which machine, or 0: it has no id
SWEPT: Final = 23  # when the directory was last swept, if the gate is named by a path
KEPT: Final = 24  # does a process keep its slot (keeping.py)? Twice the fence of its last entry, plus 1 if it is inside
KEPT_SEAT: Final = 25  # its seat
KEPT_FROM: Final = 26  # its fence when it began to keep the slot
ENDINGS: Final = 27  # how often a process has lost a slot that it kept
CLUSTER: Final = 28  # whose room it is: OF_HOST, BY_PEER or ON_LOAN
PEER: Final = 29  # the id of that peer, or 0
PEER_BELL: Final = 30  # the name of the bell that guests ring for it
CLUSTER_ID: Final = 31  # a number for the cluster of that peer, or 0: no peer has served the room yet
HISTOGRAM: Final = 32  # grants by how long they had waited: see BUCKETS
BUCKETS: Final = 24  # 1 us or less, 2 us, 4 us ... 4.2 s, and longer
GATE_PROTOCOL: Final = 56  # the protocol of a cluster's gate, as its peer has opened it: text, up to LOOK_AT
LOOK_AT: Final = 62  # when a process that waits for the lock may find out next who has it (file.py)
TURNS: Final = 63  # how often the lock was taken to open the gate or to change the table
BECKON: Final = 64  # does the peer that lends want to be rung when a user has to wait?
SLOTS: Final = 128  # the first slot: the seat that holds it, or 0. Until when it is on loan: links.until_at

# A seat.
STATE: Final = 0
TICKET: Final = 1
PERMITS: Final = 2  # slots that it wants, or holds
SLOT: Final = 3  # the lowest of its slots
FENCE: Final = 4
LEASE: Final = 5  # ns, or 0: for as long as it likes
DEADLINE: Final = 6
OWNER: Final = 7  # the name of its bell
PID: Final = 8
NAMESPACE: Final = 9  # of that pid
ASKED: Final = 10  # when
SINCE: Final = 11  # inside; of a lost permit, when it was revoked
NEXT: Final = 12  # in the queue, or of the free seats
PREVIOUS: Final = 13
SKIPPED: Final = 14  # it is stopped: nobody waits for it until it continues
GROUP: Final = 15  # the process group of its command, or 0
USER: Final = 16  # the user id of its process
HEARD: Final = 17  # its owner knows that it was let in; the owner stores this without the lock
LOOKS: Final = 18  # when the owner of a waiting seat looks again on its own; if it is SKIPPED, when others looked at it
GRANTED_BY: Final = 19  # in a cluster's room: the id of the peer that let it in
PROMISED: Final = 20  # until when that peer has promised the slot, or 0: for good
CLUSTER_SLOT: Final = 21  # its slot in the cluster, plus 1; 0 if the protocol has none
EXPECTED_K: Final = 22  # the k that a guest expects of the cluster's gate
PROTOCOL: Final = 23  # the protocol that it expects, or nothing: text, up to LENDER
LENDER: Final = 27  # the id of the peer that has this seat for the other hosts (lending.py); 0: it is a user's
NOTE: Final = 32  # text for people, UTF-8, to the end of the seat
SEAT: Final = 64  # words

# Values of CLUSTER.
OF_HOST: Final = 0  # a gate of this host: its users let each other in
BY_PEER: Final = 1  # a gate of a cluster: its peer on this host lets users in, one by one (guestbook.py)
ON_LOAN: Final = 2  # a gate of a cluster: its peer lends slots to the room, whose users let each other in (lending.py)

# States of a seat.
FREE: Final = 0
WAITING: Final = 1
INSIDE: Final = 2
LOST: Final = 3  # its permit was revoked, and its owner has not seen that yet
PINNED: Final = 4  # it never asks for a permit; it keeps the gate in use, so that k stays as it is
REFUSED: Final = 5  # the cluster does not have such a gate: its note says why, and its owner has not seen that yet

IS_A_ROOM: Final = 0x6D6F6F7265746167
IS_BEING_MADE: Final = 0x77656E65746167  # its creator has not finished, or died
THIS_VERSION: Final = 4
MOST_SLOTS: Final = 1024
MOST_SEATS: Final = 1 << 20
LIMIT: Final = 1 << 62  # tickets stay below

NUDGE: Final = 5_000_000  # ns: a new head is told of its duties at most this often
DEEP: Final = 8  # waiters: those behind look on their own less often
PATIENT: Final = 5_000_000  # ns: a process that has waited this long may have been stopped, so it is worth asking
TICK: Final = 50_000_000  # ns: how often the first waiter looks on its own. It covers stops and lost wake-ups
NEAR: Final = 16  # waiters at each end of the queue whose places are counted exactly
FAR: Final = 200  # places: waiters further back look as often as this one, every 10 s
