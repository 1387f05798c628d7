"""Identities. Every id is an integer below 2^63, so that compiled code can keep it in one machine word.

An identity is (peer, seat). Three tasks of one process that want three permits are three seats of
one peer, and the protocol sees three different identities.
"""

NIL = -1
SEAT_BITS = 16
SEATS = 1 << SEAT_BITS
ID_LIMIT = 1 << 63


def identity(peer: int, seat: int) -> int:
    """The id of one seat of a peer. Raises ValueError if either number is out of range."""
    if not 0 <= seat < SEATS:
        raise ValueError(f"seat must be 0..{SEATS - 1}, not {seat}")
    if not 0 <= peer < ID_LIMIT >> SEAT_BITS:
        raise ValueError(f"peer must be 0..2^{63 - SEAT_BITS}-1, not {peer}")
    return peer << SEAT_BITS | seat


def peer_of(ident: int) -> int:
    return ident >> SEAT_BITS


def seat_of(ident: int) -> int:
    return ident & (SEATS - 1)
