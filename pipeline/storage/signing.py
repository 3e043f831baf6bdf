"""Signatures of chains.

Reads: PEM key files (RFC 8410), as `openssl genpkey -algorithm ed25519` writes them. Gives: `Signer`, which signs texts
with Ed25519 (RFC 8032) and verifies signatures.

Note: a signature does not prove that a line is the newest: a user who can write the folder can put back an older signed
copy. `verify --anchor` detects that.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError, StoreError, VerificationError
from ..extras import package


@dataclass(frozen=True)
class Signer:
    """Signs with `signing_key`, a private key, and accepts only signatures of `trusted_key`, a public key; without
    either, nothing is signed or required.

    To begin to sign a chain, or to sign it with another key, append to it once without `trusted_key`.
    """

    signing_key: Path | None = None
    trusted_key: Path | None = None

    def signature(self, text: str) -> str:
        """The signature of a text, in base64; empty without a signing key."""
        return base64.b64encode(_private(self.signing_key).sign(text.encode())).decode() if self.signing_key else ""

    def is_signature(self, text: str, signature: str) -> bool:
        """Whether a text is signed with the trusted key, or without one with the signing key."""
        key = _public(self.trusted_key) if self.trusted_key else _private(self.signing_key).public_key()  # type: ignore[arg-type]  # one of them is set
        try:
            key.verify(base64.b64decode(signature), text.encode())
        except (ValueError, _crypto("exceptions").InvalidSignature):
            return False
        return True

    def expect_signed(self, text: str, signature: str, at: object) -> None:
        """Check that a text is signed with the trusted key, if there is one.

        Raises:
            VerificationError: it is not.
        """
        if self.trusted_key is not None and not self.is_signature(text, signature):
            got = "another signature" if signature else "no signature"
            raise VerificationError(
                f"Expected a line signed with {self.trusted_key}, got {got} - at {at}",
                hint="restore what the key holder wrote. The key holder signs an unsigned one by writing to it once "
                "with the setting `signing_key` and without `trusted_key`.",
            )

    def expect_signer(self) -> None:
        """Check that this writer can sign what readers require.

        Raises:
            StoreError: there is no signing key, or it is not the trusted one.
        """
        if self.trusted_key is not None and not (self.signing_key and self.is_signature("", self.signature(""))):
            got = f"another, {self.signing_key}" if self.signing_key else "none"
            raise StoreError(
                f"Expected the signing key of {self.trusted_key}, got {got}",
                hint="writing to a signed corpus or signed runs requires the setting `signing_key`.",
            )


UNSIGNED = Signer()
"""Signs nothing and accepts everything."""


@lru_cache(maxsize=8)
def _private(file: Path) -> Any:
    return _loaded(file, "private", lambda data: _crypto("primitives.serialization").load_pem_private_key(data, None))


@lru_cache(maxsize=8)
def _public(file: Path) -> Any:
    return _loaded(file, "public", lambda data: _crypto("primitives.serialization").load_pem_public_key(data))


def _loaded(file: Path, kind: str, load: Callable[[bytes], Any]) -> Any:
    """An Ed25519 key.

    Raises:
        InputError: the file contains none, or one that needs a passphrase.
    """
    expected = getattr(_crypto("primitives.asymmetric.ed25519"), f"Ed25519{kind.capitalize()}Key")
    try:
        key = load(file.read_bytes())
    except OSError as error:
        raise InputError(f"{error.strerror}: key {file}") from error
    except (ValueError, TypeError, _crypto("exceptions").UnsupportedAlgorithm) as error:
        raise InputError(
            f"Expected a PEM file with an Ed25519 {kind} key and no passphrase, got another file - at {file}"
        ) from error
    if not isinstance(key, expected):
        raise InputError(f"Expected an Ed25519 {kind} key, got {type(key).__name__.lstrip('_')} - at {file}")
    return key


def _crypto(module: str) -> Any:
    return package(f"cryptography.{module if module == 'exceptions' else f'hazmat.{module}'}", "sign")
