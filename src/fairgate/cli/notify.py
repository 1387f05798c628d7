"""Tells the service manager how this process is doing (sd_notify, for units of Type=notify): one datagram each time."""

import os
import socket
from contextlib import suppress

PATIENCE = 1.0  # seconds, if the manager is slow to read


def notify(**state: str) -> None:
    """For example `notify(READY="1", STATUS="keeps gpu open")`. A no-op if no manager has asked for it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):  # an abstract socket
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(PATIENCE)
        manager.sendto("\n".join([f"{name}={value}" for name, value in state.items()]).encode(), address)
