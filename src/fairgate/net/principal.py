"""What the other end of a connection has proved about itself, as text that can be stored and compared.

cert:FINGERPRINT NAME    it has the private key of a certificate with this name (TLS; fingerprint.py)
unix:UID:PID             it is this process of this user, according to the kernel (SO_PEERCRED)
secret                   it knows the cluster's secret (secret.py)
nothing                  nothing: TLS is switched off
"""

import asyncio
import os
import socket

from fairgate.net.access import credentials
from fairgate.net.secret import Secret
from fairgate.net.tls import Tls

NOTHING, SECRET, CERTIFICATE = "nothing", "secret", "cert:"


def principal_of(link: asyncio.BaseTransport) -> str:
    """What the other end has proved, apart from a secret: that takes messages."""
    encrypted = link.get_extra_info("ssl_object")
    if encrypted is not None:
        from fairgate.net.fingerprint import of_der  # noqa: PLC0415 (cryptography is slow to import)

        return f"{CERTIFICATE}{of_der(encrypted.getpeercert(binary_form=True))}"
    sock = link.get_extra_info("socket")
    if sock.family != socket.AF_UNIX:
        return NOTHING
    who = credentials(sock)
    return f"unix:{who.uid}:{who.pid}"


def own_principal(over_unix: bool, tls: Tls | None, secret: Secret | None) -> str:
    """What this process proves to the others of its cluster."""
    if over_unix:
        return f"unix:{os.geteuid()}:{os.getpid()}"
    if tls is not None:
        return f"{CERTIFICATE}{tls.holder}"
    return NOTHING if secret is None else SECRET


def fingerprint_of(principal: str) -> str:
    """The fingerprint in the principal of a certificate; empty for any other."""
    return principal.removeprefix(CERTIFICATE).partition(" ")[0] if principal.startswith(CERTIFICATE) else ""
