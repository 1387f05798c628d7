"""Identifies the holder of a certificate by its public key.

A host that gets a new certificate for its old key, as when the authority is replaced, stays the same holder.
"""

import hashlib

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of the public key, in hexadecimal."""
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(key).hexdigest()


def of_der(data: bytes) -> str:
    return of_certificate(x509.load_der_x509_certificate(data))


def of_certificate(certificate: x509.Certificate) -> str:
    """Fingerprint and name of the holder."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return f"{fingerprint(certificate)} {str(names[0].value) if names else ''}"
