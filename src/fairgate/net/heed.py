"""Not compiled, which is all there is to it: a call of Python code hears the signals that have come."""


def heed() -> None:
    """KeyboardInterrupt comes from here, if Ctrl-C was pressed while compiled code ran."""
