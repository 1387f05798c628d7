"""The notes that requests leave for people: text in the last words of a seat."""

from fairgate.room.layout import NOTE, SEAT
from fairgate.room.links import Table


def write_note(m: Table, seat: int, note: str) -> None:
    """As much of the text as there is room for. Only people read it, so it may be cut off by a death as well."""
    write_text(m, seat + NOTE, seat + SEAT, note)


def read_note(m: Table, seat: int) -> str:
    return read_text(m, seat + NOTE, seat + SEAT)


def write_text(m: Table, begin: int, end: int, text: str) -> None:
    """As much of the text as these words can hold."""
    room = 8 * (end - begin)
    data = text.encode("utf-8", "replace")[:room]
    data += bytes(min(8 - len(data) % 8, room - len(data)))  # whole words, with a zero at the end
    for at in range(len(data) // 8):
        m[begin + at] = int.from_bytes(data[8 * at : 8 * at + 8], "little", signed=True)


def read_text(m: Table, begin: int, end: int) -> str:
    """A zero ends it. Most texts are empty, so this does not read on to the end."""
    text = b""
    for at in range(begin, end):
        word = m[at]
        if not word:
            break
        text += word.to_bytes(8, "little", signed=True)
    return text.partition(b"\0")[0].decode("utf-8", "replace")
