"""What a gate counts at one peer."""


class Counts:
    """Counters of one gate at one peer, since it was opened here."""

    def __init__(self) -> None:
        self.entries = 0
        self.waited = 0  # ns, total of all entries
        self.longest = 0
        self.sent = 0
        self.received = 0
        self.lost = 0
        self.views = 0

    def entered(self, waited: int) -> None:
        self.entries += 1
        self.waited += waited
        if waited > self.longest:
            self.longest = waited
