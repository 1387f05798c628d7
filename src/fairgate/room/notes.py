"""The notes that requests leave for people: text in the last words of a seat."""

from fairgate.room.layout import NOTE, SEAT
from fairgate.room.links import Table

NOTE_BYTES = 8 * (SEAT - NOTE)


def write_note(m: Table, seat: int, note: str) -> None:
    """As much of the text as there is room for. Only people read it, so it may be cut off by a death as well."""
    text = note.encode("utf-8", "replace")[:NOTE_BYTES]
    text += bytes(min(8 - len(text) % 8, NOTE_BYTES - len(text)))  # whole words, with a zero at the end
    for at in range(len(text) // 8):
        m[seat + NOTE + at] = int.from_bytes(text[8 * at : 8 * at + 8], "little", signed=True)


def read_note(m: Table, seat: int) -> str:
    text = b"".join([m[at].to_bytes(8, "little", signed=True) for at in range(seat + NOTE, seat + SEAT)])
    return text.partition(b"\0")[0].decode("utf-8", "replace")
