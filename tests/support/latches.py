"""Is a lock taken? Asked from another thread, since some are reentrant."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any


def is_locked(lock: Any) -> bool:
    def take() -> bool:
        taken = lock.acquire(False)
        if taken:
            lock.release()
        return not taken

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(take).result()
