"""The cluster's own authority, and a certificate for each host: `fairgate keys init`, `fairgate keys add HOST`.

    ca.crt      the authority: every host needs it                    ca.key      stays where it was made
    HOST.crt    a host's certificate, for its names and addresses     HOST.key    that host's alone

Whoever has a certificate of the authority is in, so `ca.key` is the cluster. Keys are on the curve P-256, in files of
mode 0600, in a directory of mode 0700. Nothing is ever overwritten.
"""

import ipaddress
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairgate.errors import BadInput
from fairgate.net.tls import Tls, mutual

AUTHORITY = "ca"
AUTHORITY_DAYS, HOST_DAYS = 3650, 825
SLACK = timedelta(minutes=10)  # clocks differ
LONGEST_NAME = 64  # of a common name, X.509
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def init(folder: Path) -> Path:
    """Make an authority there; the path of its certificate."""
    if certificate_path(folder, AUTHORITY).exists() or key_path(folder, AUTHORITY).exists():
        raise BadInput(f"{folder} has an authority already: another one would lock its hosts out")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as wrong:
        raise BadInput(f"cannot make {folder}: {wrong.strerror}") from wrong
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fairgate cluster {os.urandom(4).hex()}")])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)  # signs certificates and lists
    certificate = (
        builder(name, name, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return write_pair(folder, AUTHORITY, key, certificate)


def add(folder: Path, host: str, also: Sequence[str] = (), days: float = HOST_DAYS) -> Path:
    """Make a host's key and its certificate, good for its name and `also` for others; the certificate's path."""
    names = [alternative(name) for name in dict.fromkeys([host, *also])]
    if host == AUTHORITY:
        raise BadInput(f"{AUTHORITY} is the authority's name: call the host something else")
    authority, authority_key = load_authority(folder)
    if certificate_path(folder, host).exists() or key_path(folder, host).exists():
        raise BadInput(f"{certificate_path(folder, host)} is there already: remove it and its .key to make another")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:LONGEST_NAME])])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        builder(subject, authority.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(usage, critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return write_pair(folder, host, key, certificate)


def load(folder: Path, host: str | None = None) -> Tls:
    """What this host needs for TLS. Left out, `host` is the only one that has its key there."""
    host = host or only_host(folder)
    for name in (AUTHORITY, host):
        check_dates(certificate_path(folder, name))
    authority, certificate, key = (
        certificate_path(folder, AUTHORITY),
        certificate_path(folder, host),
        key_path(folder, host),
    )
    check_private(key)
    try:
        return mutual(authority, certificate, key)
    except OSError as wrong:  # a key that is not this certificate's is an SSLError, which is one
        raise BadInput(f"cannot use {key} with {certificate}: {wrong.strerror or wrong}") from wrong


def builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + timedelta(days=days)) - SLACK)
        .not_valid_after(now + timedelta(days=days))
    )


def alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        if not NAME.fullmatch(name):
            raise BadInput(f"{name!r} is neither a host's name nor an IP address") from None
        return x509.DNSName(name)


def certificate_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.crt"


def key_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.key"


def write_pair(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> Path:
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_new(key_path(folder, name), secret)
    write_new(certificate_path(folder, name), certificate.public_bytes(pem))
    return certificate_path(folder, name)


def write_new(path: Path, data: bytes) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
    except OSError as wrong:
        raise BadInput(f"cannot write {path}: {wrong.strerror}") from wrong


def load_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    path = key_path(folder, AUTHORITY)
    certificate = read_certificate(certificate_path(folder, AUTHORITY))
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except OSError as wrong:
        raise BadInput(
            f"cannot read {path}: {wrong.strerror} (certificates are made where the authority is)"
        ) from wrong
    except (ValueError, TypeError) as wrong:
        raise BadInput(f"{path} is no private key") from wrong
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise BadInput(f"{path} is not the key of {certificate_path(folder, AUTHORITY)}")
    return certificate, key


def read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError as wrong:
        raise BadInput(f"there is no {path}: make it with `fairgate keys init` or `fairgate keys add`") from wrong
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    except ValueError as wrong:
        raise BadInput(f"{path} is no certificate") from wrong


def check_dates(path: Path) -> None:
    certificate, now = read_certificate(path), datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        again = "fairgate keys init" if path.stem == AUTHORITY else f"fairgate keys add {path.stem}"
        raise BadInput(
            f"{path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}: remove it and run `{again}` again"
        )
    if now < certificate.not_valid_before_utc:
        raise BadInput(
            f"{path} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC: is the clock right?"
        )


def check_private(path: Path) -> None:
    try:
        mode = path.stat().st_mode & 0o777
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    if mode & 0o077:
        raise BadInput(f"{path} can be read by others (mode {mode:04o}): chmod 0600 it")


def only_host(folder: Path) -> str:
    hosts = sorted(path.stem for path in folder.glob("*.key") if path.stem != AUTHORITY)
    if len(hosts) != 1:
        which = f": say which is this host's, such as {certificate_path(folder, hosts[0])}" if hosts else ""
        raise BadInput(f"{folder} has {listed(hosts)}{which}")
    return hosts[0]


def listed(hosts: Iterable[str]) -> str:
    return f"keys of {', '.join(hosts)}" if hosts else "no host's key"
