"""The certificate authority of a cluster and the certificates of its hosts: `fairgate keys init` and `add HOST`.

    ca.crt      the authority's certificate: every host needs it      ca.key      stays where it was created
    HOST.crt    a host's certificate, for its names and addresses     HOST.key    for that host only
    denied      keys that are refused, see denied.py

Anyone with a certificate signed by the authority can join, so keep `ca.key` secret. Keys use the curve P-256. Files
have mode 0600, in a directory with mode 0700; files that others could read or change are refused. No key is ever
overwritten. key_rotation.py replaces the authority.
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
from fairgate.net import denied
from fairgate.net.fingerprint import fingerprint, of_certificate
from fairgate.net.private_files import check_private, check_unchanged
from fairgate.net.tls import Tls, mutual

AUTHORITY, NEXT = "ca", "ca.next"
AUTHORITY_DAYS, HOST_DAYS = 3650, 825
SLACK = timedelta(minutes=10)  # tolerated difference between clocks
LONGEST_NAME = 64  # the X.509 limit for a common name
FINGERPRINT = re.compile(r"[0-9a-f]{64}")
PEM = serialization.Encoding.PEM
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
    key, certificate = new_authority()
    return write_pair(folder, AUTHORITY, key, certificate)


def new_authority() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
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
    return key, certificate


def add(folder: Path, host: str, also: Sequence[str] = (), days: float = HOST_DAYS) -> Path:
    """Creates a host's key and its certificate, valid for its name and those in `also`; returns the latter's path.

    BadInput if there is no authority, a name is invalid, or the host already has a certificate.
    """
    names = [alternative(name) for name in dict.fromkeys([host, *also])]
    if host in (AUTHORITY, NEXT):
        raise BadInput(f"the name {host} is reserved for the authority: give the host another name")
    authority, authority_key = load_authority(folder)
    if certificate_path(folder, host).exists() or key_path(folder, host).exists():
        raise BadInput(f"{certificate_path(folder, host)} already exists: remove it and its .key to create a new one")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:LONGEST_NAME])])
    names_of_host = x509.SubjectAlternativeName(names)
    certificate = signed(authority, authority_key, subject, names_of_host, key.public_key(), days)
    return write_pair(folder, host, key, certificate)


def signed(
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
    subject: x509.Name,
    names: x509.SubjectAlternativeName,
    key: ec.EllipticCurvePublicKey,
    days: float,
) -> x509.Certificate:
    """A host's certificate for this public key."""
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        builder(subject, authority.subject, key, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(names, critical=False)
        .add_extension(usage, critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def load(folder: Path, host: str | None = None) -> Tls:
    """Loads what this host needs for TLS: pass it to `join` as `tls`. Peers notice if the files change.

    `host` may be left out if the directory has the key of only one host. BadInput if files are missing, expired, do not
    belong together, are denied, or can be read or changed by other users.
    """
    files = KeyFiles(folder, host or only_host(folder))
    tls = files.loaded()
    tls.reload = files.reloaded
    return tls


class KeyFiles:
    """The files of one host, and what they looked like when they were last read."""

    def __init__(self, folder: Path, host: str) -> None:
        self.folder = folder
        self.authority, self.certificate = certificate_path(folder, AUTHORITY), certificate_path(folder, host)
        self.key = key_path(folder, host)
        self.stamps = self.look()

    def look(self) -> list[tuple[int, int, int]]:
        """Changes if a file does."""
        paths = (self.authority, self.certificate, self.key, denied.path_in(self.folder))
        found = [path.stat() for path in paths if path.exists()]
        return [(one.st_ino, one.st_mtime_ns, one.st_size) for one in found]

    def reloaded(self) -> Tls | None:
        try:
            stamps = self.look()
        except OSError:  # a file is being replaced
            return None
        if stamps == self.stamps:
            return None
        self.stamps = stamps
        return self.loaded()

    def loaded(self) -> Tls:
        for path in (self.authority, self.certificate):
            check_dates(path)
            check_unchanged(path)
        check_private(self.key)
        refused = denied.read(self.folder)
        certificate = read_certificate(self.certificate)
        if fingerprint(certificate) in refused:
            raise BadInput(f"{self.certificate} is on the deny list: create another key for this host")
        try:
            tls = mutual(self.authority, self.certificate, self.key, of_certificate(certificate))
        except OSError as wrong:  # includes SSLError, which is raised if key and certificate do not match
            raise BadInput(f"cannot use {self.key} with {self.certificate}: {wrong.strerror or wrong}") from wrong
        tls.denied = refused
        return tls


def deny(folder: Path, host: str) -> Path:
    """Adds a host's key to the deny list, and returns the list's path. `host` may also be a fingerprint."""
    if FINGERPRINT.fullmatch(host):
        return denied.add(folder, host, "")
    if host == AUTHORITY:
        raise BadInput("an authority cannot be denied: replace it with `fairgate keys rotate`")
    certificate = read_certificate(certificate_path(folder, host))
    return denied.add(folder, fingerprint(certificate), host)


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
    write_key(folder, name, key)
    write_new(certificate_path(folder, name), certificate.public_bytes(PEM))
    return certificate_path(folder, name)


def write_key(folder: Path, name: str, key: ec.EllipticCurvePrivateKey) -> None:
    secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_new(key_path(folder, name), secret)


def write_new(path: Path, data: bytes) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
    except OSError as wrong:
        raise BadInput(f"cannot write {path}: {wrong.strerror}") from wrong


def load_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    certificate = read_certificate(certificate_path(folder, AUTHORITY))
    check_unchanged(certificate_path(folder, AUTHORITY))
    key = read_key(key_path(folder, AUTHORITY))
    if key.public_key() != certificate.public_key():
        raise BadInput(f"{key_path(folder, AUTHORITY)} is not the key of {certificate_path(folder, AUTHORITY)}")
    return certificate, key


def read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    if not path.exists():
        raise BadInput(f"{path} does not exist: create certificates where the authority's key is")
    check_private(path)
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except OSError as wrong:
        raise BadInput(f"cannot read {path}: {wrong.strerror}") from wrong
    except (ValueError, TypeError) as wrong:
        raise BadInput(f"{path} is not a private key") from wrong
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise BadInput(f"{path} is not a key of the kind that fairgate creates")
    return key


def read_certificate(path: Path) -> x509.Certificate:
    """The first certificate in the file: of authorities, that of the one that signs."""
    return read_certificates(path)[0]


def read_certificates(path: Path) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(path.read_bytes())
    except FileNotFoundError as wrong:
        how = "fairgate keys init DIR" if path.stem == AUTHORITY else f"fairgate keys add {path.stem}"
        raise BadInput(f"{path} does not exist: create it with `{how}`, or name another directory") from wrong
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


def only_host(folder: Path) -> str:
    if not folder.is_dir():
        raise BadInput(
            f"the directory {folder} does not exist: create keys with `fairgate keys init` and copy them there"
        )
    hosts = sorted(path.stem for path in folder.glob("*.key") if path.stem not in (AUTHORITY, NEXT))
    if len(hosts) != 1:
        which = f": specify which is this host's, such as {certificate_path(folder, hosts[0])}" if hosts else ""
        raise BadInput(f"{folder} has {listed(hosts)}{which}")
    return hosts[0]


def listed(hosts: Iterable[str]) -> str:
    return f"keys of {', '.join(hosts)}" if hosts else "no key of a host"
