"""Pools of memory for messages. This twin does nothing: only compiled classes can have one (pool.pyx)."""


def pool(kind: type) -> None:
    """Let freed objects of this class wait to be used again."""
