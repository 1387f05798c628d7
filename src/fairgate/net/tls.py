"""Mutual TLS between the hosts of a cluster. `keys.py` creates and loads the files.

Both sides present a certificate signed by the cluster's own authority. No other authority is accepted, not even those
that the system trusts. The dialling side also checks that the certificate is for the host that it dialled. A
certificate whose key is on the deny list is refused right after the handshake.

The files can be replaced while peers run: new connections use the new ones (`Tls.refresh`).
"""

import os
import re
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Tls:
    """The TLS contexts of one host, for accepting and for dialling."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    holder: str  # of the certificate, see fingerprint.py
    denied: frozenset[str] = frozenset()  # fingerprints of keys that are refused, see fingerprint.py
    reload: Callable[[], "Tls | None"] | None = None  # the contexts of changed files; None if they are unchanged

    def refresh(self) -> bool:
        """Uses the files as they are now. False if they have not changed since they were last looked at.

        BadInput if the changed files cannot be used. The old contexts stay in force then.
        """
        new = None if self.reload is None else self.reload()
        if new is None:
            return False
        self.server, self.client, self.holder, self.denied = new.server, new.client, new.holder, new.denied
        return True


def mutual(authority: Path, certificate: Path, key: Path, holder: str) -> Tls:
    """Creates the contexts. The files must have been checked (keys.py)."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks host names by default
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority)
        context.load_cert_chain(certificate, key)
    return Tls(server, client, holder)


CLOSED = "it closed the connection"
EXPIRED, NOT_YET_VALID, UNTRUSTED, WRONG_NAME, WRONG_IP = 10, 9, (18, 19, 20, 21), 62, 64

REASONS = {  # OpenSSL's reason -> what it means for the other peer
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate",
    "HTTP_REQUEST": "it does not speak TLS",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "it uses an old version of TLS",
}


def explain(error: BaseException) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == EXPIRED:
            return "its certificate has expired"
        if error.verify_code == NOT_YET_VALID:
            return "its certificate is not valid yet: check the clocks"
        if error.verify_code in UNTRUSTED:
            return "its certificate is not signed by this cluster's authority"
        if error.verify_code in (WRONG_NAME, WRONG_IP):
            return f"its certificate is for another host ({error.verify_message})"
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return REASONS.get(error.reason or "", f"TLS failed ({error.reason or error})")
    if isinstance(error, ConnectionResetError):
        return CLOSED
    if isinstance(error, ConnectionAbortedError | TimeoutError):  # a TLS handshake that took too long
        return "it did not answer in time"
    if isinstance(error, socket.gaierror) and error.strerror:
        return error.strerror.lower()
    if isinstance(error, OSError):  # asyncio's own texts name the call, or list the errors of all addresses of a name
        numbers = [error.errno] if error.errno else map(int, re.findall(r"\[Errno (\d+)\]", str(error)))
        words = dict.fromkeys(os.strerror(number).lower() for number in numbers)
        return " or ".join(words) or str(error)
    return str(error) or type(error).__name__
