"""The certificate authority of a cluster and the certificates of its hosts: `fairgate keys init` and `add HOST`.

    ca.crt      the authority's certificate: every host needs it      ca.key      stays where it was created
    HOST.crt    a host's certificate, for its names and addresses     HOST.key    for that host only

Anyone with a certificate signed by the authority can join, so keep `ca.key` secret. Keys use the curve P-256. Files
have mode 0600, in a directory with mode 0700. Nothing is ever overwritten.
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
from fairgate.net.fingerprint import of_certificate
from fairgate.net.tls import Tls, mutual

AUTHORITY = "ca"
AUTHORITY_DAYS, HOST_DAYS = 3650, 825
SLACK = timedelta(minutes=10)  # tolerated difference between clocks
LONGEST_NAME = 64  # the X.509 limit for a common name
NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def init(folder: Path) -> Path:
    """Creates an authority in this directory and returns the path of its certificate.

    BadInput if there already is one, or if the directory cannot be written to.
    """
    if certificate_path(folder, AUTHORITY).exists() or key_path(folder, AUTHORITY).exists():
        raise BadInput(f"{folder} already has an authority: a new one would lock out its hosts")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as wrong:
        raise BadInput(f"cannot create {folder}: {wrong.strerror}") from wrong
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fairgate cluster {os.urandom(4).hex()}")])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)  # signs certificates and CRLs
    certificate = (
        builder(name, name, key.public_key(), AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return write_pair(folder, AUTHORITY, key, certificate)


def add(folder: Path, host: str, also: Sequence[str] = (), days: float = HOST_DAYS) -> Path:
    """Creates a host's key and its certificate, valid for its name and those in `also`; returns the latter's path.

    BadInput if there is no authority, a name is invalid, or the host already has a certificate.
    """
    names = [alternative(name) for name in dict.fromkeys([host, *also])]
    if host == AUTHORITY:
        raise BadInput(f"the name {AUTHORITY} is reserved for the authority: give the host another name")
    authority, authority_key = load_authority(folder)
    if certificate_path(folder, host).exists() or key_path(folder, host).exists():
        raise BadInput(f"{certificate_path(folder, host)} already exists: remove it and its .key to create a new one")
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
    """Loads what this host needs for TLS: pass it to `join` as `tls`.

    `host` may be left out if the directory has the key of only one host. BadInput if files are missing, expired, do not
    belong together, or can be read by other users.
    """
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
    except OSError as wrong:  # includes SSLError, which is raised if key and certificate do not match
        raise BadInput(f"cannot use {key} with {certificate}: {wrong.strerror or wrong}") from wrong


def principal(folder: Path, host: str) -> str:
    """What a host with this certificate proves to be (principal.py)."""
    return f"cert:{of_certificate(read_certificate(certificate_path(folder, host)))}"


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
            raise BadInput(f"{name!r} is neither a host name nor an IP address") from None
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
            f"cannot read {path}: {wrong.strerror} (create certificates where the authority's key is)"
        ) from wrong
    except (ValueError, TypeError) as wrong:
        raise BadInput(f"{path} is not a private key") from wrong
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
        raise BadInput(f"{path} is not the key of {certificate_path(folder, AUTHORITY)}")
    return certificate, key


def read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError as wrong:
        raise BadInput(f"{path} does not exist: create it with `fairgate keys init` or `fairgate keys add`") from wrong
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    except ValueError as wrong:
        raise BadInput(f"{path} is not a certificate") from wrong


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
        raise BadInput(f"{path} can be read by other users (mode {mode:04o}): set mode 0600")


def only_host(folder: Path) -> str:
    if not folder.is_dir():
        raise BadInput(
            f"the directory {folder} does not exist: create keys with `fairgate keys init` and copy them there"
        )
    hosts = sorted(path.stem for path in folder.glob("*.key") if path.stem != AUTHORITY)
    if len(hosts) != 1:
        which = f": specify which is this host's, such as {certificate_path(folder, hosts[0])}" if hosts else ""
        raise BadInput(f"{folder} has {listed(hosts)}{which}")
    return hosts[0]


def listed(hosts: Iterable[str]) -> str:
    return f"keys of {', '.join(hosts)}" if hosts else "no key of a host"
