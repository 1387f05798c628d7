"""Whoever starts the tests in the background may have SIGINT ignored, and every process below would inherit that."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
