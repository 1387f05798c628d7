"""portalocker's tests: the gate of a file's inode locks it, through portalocker's own hook for such mechanisms.

A shared lock takes one of many slots, an exclusive one all of them.
"""

from __future__ import annotations

import os
from typing import IO, Any
from weakref import WeakKeyDictionary, finalize

import portalocker
import portalocker.portalocker
from portalocker import LockFlags

from fairgate.sync import Permit
from tests.peers.adapters.gates import READERS, gate

permits: WeakKeyDictionary[IO[Any], Permit] = WeakKeyDictionary()


class Gates(portalocker.portalocker.BaseLocker):  # type: ignore[misc]
    def lock(self, file_obj: IO[Any], flags: LockFlags) -> None:
        found = os.fstat(file_obj.fileno())
        waits = not flags & LockFlags.NON_BLOCKING
        n = READERS if flags & LockFlags.EXCLUSIVE else 1
        permit = gate(f"{found.st_dev}-{found.st_ino}", READERS).acquire(None if waits else 0, n=n)
        if permit is None:
            raise portalocker.AlreadyLocked(fh=file_obj)
        permits[file_obj] = permit
        finalize(file_obj, permit.release)  # as a lock of the system, it ends with its file

    def unlock(self, file_obj: IO[Any]) -> None:
        permit = permits.pop(file_obj, None)
        if permit is not None:
            permit.release()


portalocker.portalocker.LOCKER = Gates()
