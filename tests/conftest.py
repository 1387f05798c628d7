"""Whoever starts the tests in the background may have signals ignored, and every process below would inherit that."""

from __future__ import annotations

import signal

for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, signal.default_int_handler if each == signal.SIGINT else signal.SIG_DFL)
