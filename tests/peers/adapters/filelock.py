"""filelock's tests: a lock is the gate whose file is at its path. Nesting and defaults stay filelock's own."""

from __future__ import annotations

from typing import Any

import filelock

from tests.peers.adapters.gates import file_gate


class GateLock(filelock.BaseFileLock):  # type: ignore[misc]
    def acquire(self, timeout: float | None = None, *how: Any, blocking: bool | None = None, **more: Any) -> Any:
        given = self.timeout if timeout is None else timeout
        waits = self.blocking if blocking is None else blocking
        self._context.seconds = 0 if not waits else None if given < 0 else given
        return super().acquire(timeout, *how, blocking=blocking, **more)

    def _acquire(self) -> None:
        """Waits in the gate's queue, so the loop around it never goes round twice."""
        self._context.lock_file_fd = file_gate(self.lock_file).acquire(self._context.seconds)

    def _release(self) -> None:
        permit, self._context.lock_file_fd = self._context.lock_file_fd, None
        permit.release()


class SoftGateLock(GateLock):
    """filelock's second kind of lock is the same one here."""


filelock.FileLock = filelock.UnixFileLock = GateLock
filelock.SoftFileLock = SoftGateLock
