"""Mutual TLS between the hosts of a cluster. `keys.py` makes the files and loads them; here is what a connection needs.

Both sides show a certificate that the cluster's own authority signed, and nothing else is accepted: no system-wide
authority counts. The side that dials also checks that the certificate has the host it dialled.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tls:
    """What one host needs to accept and to dial."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def mutual(authority: Path, certificate: Path, key: Path) -> Tls:
    """Contexts from files that are known to be good."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # this one checks names by itself
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority)
        context.load_cert_chain(certificate, key)
    return Tls(server, client)


CLOSED = "it closed the connection"
EXPIRED, NOT_YET_VALID, UNTRUSTED, WRONG_NAME, WRONG_IP = 10, 9, (18, 19, 20, 21), 62, 64

REASONS = {  # what the TLS library calls it -> what it means between peers
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it has no certificate",
    "HTTP_REQUEST": "it does not speak TLS",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "UNSUPPORTED_PROTOCOL": "it speaks an old version of TLS",
}


def explain(error: BaseException) -> str:
    """What went wrong with a connection, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == EXPIRED:
            return "its certificate has expired"
        if error.verify_code == NOT_YET_VALID:
            return "its certificate is not valid yet: compare the clocks"
        if error.verify_code in UNTRUSTED:
            return "its certificate is not of this cluster's authority"
        if error.verify_code in (WRONG_NAME, WRONG_IP):
            return f"its certificate is another host's ({error.verify_message})"
        return f"its certificate is not good ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return REASONS.get(error.reason or "", f"TLS failed ({error.reason or error})")
    if isinstance(error, ConnectionResetError):
        return CLOSED
    if isinstance(error, ConnectionAbortedError | TimeoutError):  # so asyncio ends a TLS greeting that takes too long
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
