"""Keys that heads are signed with in tests; importing this module needs the extra `sign`."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519


def keys(folder: Path, name: str = "ann") -> tuple[Path, Path]:
    """Files of a new private key and its public key."""
    private = ed25519.Ed25519PrivateKey.generate()
    files = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    none = serialization.NoEncryption()
    files[0].write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, none))
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    files[1].write_bytes(private.public_key().public_bytes(serialization.Encoding.PEM, form))
    return files
