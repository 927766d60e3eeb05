"""Key material of key pairs: fingerprints and generation (SSH: RFC 4253, RFC 4716; X.509 for WinRM)."""

import base64
import binascii
import datetime
import hashlib
from dataclasses import dataclass

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from kilonova.base import clock
from kilonova.contract import exceptions

_BITS = 2048
_PRINCIPAL_NAME = ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")
_VALID_DAYS = 3650
_UTF8_STRING = 0x0C
_LONGEST_SHORT_FORM = 0x7F


@dataclass(frozen=True, slots=True)
class Material:
    """``private_key`` is None for an imported key."""

    public_key: str
    fingerprint: str
    private_key: str | None = None


def imported(public_key: str, kind: str) -> Material:
    """A given public key with its fingerprint. Raises InvalidKeypair."""
    fingerprint = _x509_fingerprint(public_key) if kind == "x509" else _ssh_fingerprint(public_key)
    return Material(public_key, fingerprint)


def generated(user_id: str, kind: str) -> Material:
    """A new RSA key; for X.509 a certificate for client authentication and a PKCS#12 file without password."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    return _x509(key, user_id) if kind == "x509" else _ssh(key)


def _ssh(key: rsa.RSAPrivateKey) -> Material:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    public = f"{public} Generated-by-Nova"
    return Material(public, _ssh_fingerprint(public), private)


def _ssh_fingerprint(public_key: str) -> str:
    try:
        encoded = public_key.split(" ")[1]
        serialization.load_ssh_public_key(" ".join(public_key.split(" ")[:2]).encode())
        return _colons(hashlib.md5(base64.b64decode(encoded), usedforsecurity=False).hexdigest())
    except (IndexError, ValueError, binascii.Error, UnicodeError, UnsupportedAlgorithm) as error:
        raise exceptions.InvalidKeypair(reason="failed to generate fingerprint") from error


def _x509(key: rsa.RSAPrivateKey, user_id: str) -> Material:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user_id[:64])])
    now = clock.now()
    principal = f"{user_id}@localhost".encode()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.OtherName(_PRINCIPAL_NAME, _der_utf8(principal))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM).decode()
    file = pkcs12.serialize_key_and_certificates(None, key, certificate, None, serialization.NoEncryption())
    return Material(public, _x509_fingerprint(public), base64.b64encode(file).decode())


def _x509_fingerprint(certificate: str) -> str:
    try:
        loaded = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError as error:
        raise exceptions.InvalidKeypair(
            reason=f"failed to generate X509 fingerprint. Error message: {error}"
        ) from error
    return _colons(loaded.fingerprint(hashes.SHA1()).hex())  # noqa: S303 - the API's form of fingerprint


def _der_utf8(text: bytes) -> bytes:
    length = len(text)
    if length <= _LONGEST_SHORT_FORM:
        return bytes([_UTF8_STRING, length]) + text
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([_UTF8_STRING, 0x80 | len(size)]) + size + text


def _colons(digest: str) -> str:
    return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2))
