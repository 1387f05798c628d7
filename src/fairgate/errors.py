"""What a person did wrong, in one line that says what it was and what to do: never a traceback."""


class BadInput(ValueError):
    """The command line ends with this text and exit code 2."""
