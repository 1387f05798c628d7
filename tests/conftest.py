"""Whoever starts the tests in the background may have signals ignored, and every process below would inherit that."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """A command that a test runs in this process installs handlers, and the next test may send itself a signal."""
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGCHLD)
    before = {each: signal.getsignal(each) for each in handled}
    wakeup = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(wakeup)
    yield
    signal.set_wakeup_fd(wakeup)
    for each, handler in before.items():
        signal.signal(each, handler)
