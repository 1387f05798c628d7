"""Replaces the authority of a cluster while its peers run, in three steps of `fairgate keys rotate`.

    begin    creates the next authority; ca.crt has both certificates     copy ca.crt to every host
    hosts    signs every host's certificate anew                          copy HOST.crt to its host
    end      ca.crt has the new certificate only                          copy ca.crt to every host

Between the steps, hosts may be in either state: all accept both authorities before any host shows a certificate of the
new one, and no host shows one of the old before that is no longer accepted. Hosts keep their keys, so they are the same
principals to the others (fingerprint.py). Denied hosts get no new certificate. A step that was interrupted can be
repeated.
"""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from fairgate.errors import BadInput
from fairgate.net import denied
from fairgate.net.fingerprint import fingerprint
from fairgate.net.keys import (
    AUTHORITY,
    HOST_DAYS,
    NEXT,
    PEM,
    certificate_path,
    check_dates,
    key_path,
    load_authority,
    new_authority,
    read_certificate,
    read_certificates,
    read_key,
    signed,
    write_key,
)
from fairgate.net.private_files import write_over


def begin(folder: Path) -> Path:
    """Creates the next authority. Returns the file to copy. BadInput if a rotation has begun already."""
    old, _ = load_authority(folder)
    if key_path(folder, NEXT).exists():
        raise BadInput(f"{key_path(folder, NEXT)} exists: continue with `fairgate keys rotate hosts`")
    if len(read_certificates(certificate_path(folder, AUTHORITY))) > 1:
        raise BadInput(f"{folder} has two authorities: finish with `fairgate keys rotate end` first")
    key, certificate = new_authority()
    write_key(folder, NEXT, key)
    return write_authorities(folder, [old, certificate])


def hosts(folder: Path) -> list[Path]:
    """Signs the hosts' certificates by the next authority, which signs from now on. Returns the files to copy."""
    if not key_path(folder, NEXT).exists():
        raise BadInput(f"{key_path(folder, NEXT)} does not exist: start with `fairgate keys rotate begin`")
    key = read_key(key_path(folder, NEXT))
    found = read_certificates(certificate_path(folder, AUTHORITY))
    new = [one for one in found if one.public_key() == key.public_key()]
    if not new:
        raise BadInput(f"{key_path(folder, NEXT)} has no certificate: remove it and begin again")
    refused = denied.read(folder)
    made = []
    for path in sorted(folder.glob("*.crt")):
        certificate = read_certificate(path)
        if path.stem != AUTHORITY and fingerprint(certificate) not in refused:
            write_over(path, renewed(new[0], key, certificate).public_bytes(PEM))
            made.append(path)
    write_authorities(folder, [*new, *[one for one in found if one not in new]])
    key_path(folder, NEXT).replace(key_path(folder, AUTHORITY))
    return made


def renewed(authority: x509.Certificate, key: ec.EllipticCurvePrivateKey, old: x509.Certificate) -> x509.Certificate:
    """A certificate like the old one, for the same key, by another authority."""
    names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    host_key = old.public_key()
    assert isinstance(host_key, ec.EllipticCurvePublicKey)
    return signed(authority, key, old.subject, names, host_key, HOST_DAYS)


def end(folder: Path) -> Path:
    """Drops the old authority. Returns the file to copy. BadInput if there is none, or hosts are not signed yet."""
    if key_path(folder, NEXT).exists():
        raise BadInput("the hosts have no certificates of the new authority yet: run `fairgate keys rotate hosts`")
    new, _ = load_authority(folder)
    if len(read_certificates(certificate_path(folder, AUTHORITY))) == 1:
        raise BadInput(f"{folder} has one authority: start with `fairgate keys rotate begin`")
    check_dates(certificate_path(folder, AUTHORITY))
    return write_authorities(folder, [new])


def write_authorities(folder: Path, certificates: list[x509.Certificate]) -> Path:
    path = certificate_path(folder, AUTHORITY)
    write_over(path, b"".join([one.public_bytes(PEM) for one in certificates]))
    return path
