"""What a new guest of a standing peer asks for."""


class Wish:
    """What a new guest asks for, and what others see of it."""

    __slots__ = ("guest", "k", "note", "number", "protocol")

    def __init__(self, number: int, k: int, protocol: str, guest: tuple[int, int], note: str) -> None:
        self.number = number
        self.k = k
        self.protocol = protocol
        self.guest = guest  # its process and user
        self.note = note
