"""Whoever starts the tests in the background may have signals ignored, and every process below would inherit that."""

from __future__ import annotations

import signal

for ignored, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, usual)
