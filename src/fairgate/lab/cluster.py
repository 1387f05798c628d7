"""Runs on a Dask cluster: its executor takes the place of worker processes."""

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec

from fairgate.errors import BadInput

PATIENCE = 10  # seconds to wait for a scheduler


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """Yields the executor of the cluster whose scheduler listens at this address, such as tcp://head:8786.

    Raises BadInput if Dask is not installed, or the scheduler does not answer.
    """
    if find_spec("distributed") is None:
        raise BadInput("runs on a Dask cluster need distributed: pip install 'fairgate[dask]'")
    distributed = import_module("distributed")
    try:
        client = distributed.Client(address, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as wrong:  # ValueError: no such kind of address
        raise BadInput(f"the Dask scheduler {address!r} does not answer: start it, or check its address") from wrong
    with client:
        yield client.get_executor()
