"""Identities. Every id is an integer below 2^63, so that it is one machine word compiled.

An identity is (peer, seat): three tasks of one process that want three permits are three seats of
one peer, and three different identities to the protocol.
"""

NIL = -1
SEAT_BITS = 16
SEATS = 1 << SEAT_BITS
ID_LIMIT = 1 << 63


def identity(peer: int, seat: int) -> int:
    """The id of one seat of a peer."""
    if not 0 <= seat < SEATS:
        raise ValueError(f"seat {seat} is not in 0..{SEATS - 1}")
    if not 0 <= peer < ID_LIMIT >> SEAT_BITS:
        raise ValueError(f"peer {peer} is not in 0..2^{63 - SEAT_BITS}-1")
    return peer << SEAT_BITS | seat


def peer_of(ident: int) -> int:
    return ident >> SEAT_BITS


def seat_of(ident: int) -> int:
    return ident & (SEATS - 1)
