"""Signals as in a terminal, a temporary directory that every test leaves as it was, and peers that make no mistakes.

A shell that starts the tests in the background may ignore some signals, and every process below would inherit that.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from fairgate.live.background import FILE
from tests.support import temporary

for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)


temporary.use_own_folder()
os.environ[FILE] = str(temporary.file_of_mistakes())


def pytest_unconfigure() -> None:
    temporary.remove_own_folder()


@pytest.fixture(autouse=True)
def leaves_no_files() -> Iterator[None]:
    """Fails a test that leaves something in the temporary directory."""
    before = temporary.what_is_there()
    yield
    temporary.remove_hosts()
    left = temporary.left_since(before)
    assert not left, f"left in the temporary directory: {', '.join(sorted(left))}"


@pytest.fixture(autouse=True)
def no_mistakes() -> Iterator[None]:
    """Fails a test in which a callback or a task of a peer raised, in this process or in one that the test started."""
    yield
    file = temporary.file_of_mistakes()
    told = file.read_text()
    file.write_text("")
    assert not told, f"mistakes of peers:\n{told}"


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
