"""Trust in the current generation of a corpus: the place of its heads, the key that signs them and the key they must be
signed with.

Reads: key files, and the file of accepted heads. Gives: `Trust`, which signs heads and refuses those that are unsigned,
signed with another key, or older than one accepted before.

A signature is Ed25519 (RFC 8032) over `scoped-retrieval/head/1`, a line feed and the JSON of the head; keys are PEM files
(RFC 8410), as `openssl genpkey -algorithm ed25519` writes them. A signature does not prove that a head is current: a user who can write the
folder can restore an older signed head. So the newest accepted head of each corpus is kept on this machine, as SSH
keeps the keys of known hosts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError, StoreError
from ..storage.durable import exists, make_folders, read_whole, write_atomic
from ..storage.places import Place
from .heads import Head

__all__ = ["UNSIGNED", "Trust"]

_SIGNED = "scoped-retrieval/head/1\n"


@dataclass(frozen=True)
class Trust:
    """How the heads of a corpus are stored and signed: by default in its folder, unsigned."""

    heads: Place | None = None
    """The folder of CURRENT and HEADS; None = that of the corpus."""
    signing_key: Path | None = None
    """Private key that new heads are signed with."""
    trusted_key: Path | None = None
    """Public key: heads without its signature are refused."""
    seen: Path | None = None
    """File of the newest accepted heads, by corpus."""

    def place(self, corpus: Place) -> Place:
        """The folder of CURRENT and HEADS of a corpus."""
        return corpus if self.heads is None else self.heads

    def signed(self, head: Head) -> Head:
        """The head, signed if there is a key."""
        if self.signing_key is None:
            return head
        return replace(head, signature=self.signature(_message(head)))

    @property
    def signs(self) -> bool:
        """Whether there is a signing key."""
        return self.signing_key is not None

    def signature(self, text: str) -> str:
        """The signature of a text, in base64; requires a signing key."""
        return base64.b64encode(_private(self.signing_key).sign(text.encode())).decode()  # type: ignore[arg-type]  # who asks has one

    def is_signed(self, head: Head) -> bool:
        """Whether a head is signed with the trusted key, or without one with the signing key."""
        return self.is_signature(_message(head), head.signature)

    def is_signature(self, text: str, signature: str) -> bool:
        """Whether a text is signed with the trusted key, or without one with the signing key."""
        key = _public(self.trusted_key) if self.trusted_key else _private(self.signing_key).public_key()  # type: ignore[arg-type]  # one of them is set
        try:
            key.verify(base64.b64decode(signature), text.encode())
        except (ValueError, _crypto("exceptions").InvalidSignature):
            return False
        return True

    def expect_signer(self) -> None:
        """Check that a writer can sign heads if signatures are required.

        Raises:
            StoreError: there is no signing key, or it is not the trusted one.
        """
        if self.trusted_key is None:
            return
        probe = Head(0, 0, "", "", "")
        if self.signing_key is None or not self.is_signed(self.signed(probe)):
            got = "none" if self.signing_key is None else f"another, {self.signing_key}"
            raise StoreError(
                f"Expected the signing key of {self.trusted_key}, got {got}",
                hint="writing to a corpus with signed heads requires the setting `signing_key`.",
            )

    def expect_signed(self, head: Head | None, at: Place) -> None:
        """Check that a head is signed with the trusted key, if one is set.

        Raises:
            StoreError: it is not.
        """
        if self.trusted_key is None or (head is not None and self.is_signed(head)):
            return
        got = "an unsigned one" if head is None or not head.signature else "one with another signature"
        raise StoreError(
            f"Expected a head signed with {self.trusted_key}, got {got} - at {at}",
            hint="restore the head that the key holder wrote; the key holder signs an unsigned corpus with `corpus upgrade`.",
        )

    def expect_newest(self, corpus_id: str, head: Head, chain: Callable[[], Sequence[Head]], at: Place) -> None:
        """Check that a head is the last accepted one or continues from it, and record it as the newest.

        Raises:
            StoreError: it is older, or from another chain.
        """
        if self.seen is None:
            return
        known = _seen(self.seen)
        number, hash_ = known.get(corpus_id, (0, ""))
        older = head.number < number or (head.number == number and head.hash != hash_)
        if older or (head.number > number > 0 and hash_ not in {each.hash for each in chain()}):
            raise StoreError(
                f"Expected head {number} of the corpus or a later one of its chain, got head {head.number} - at {at}",
                hint=f"the corpus was rolled back or replaced. If this was intended, remove its entry from {self.seen}.",
            )
        if head.number > number:
            make_folders(self.seen.parent)
            known[corpus_id] = (head.number, head.hash)
            write_atomic(self.seen, f"{json.dumps(known, indent=1, sort_keys=True)}\n".encode())

    def log_set_back(self, hashes: Sequence[str]) -> str | None:
        """The problem if a log of runs, by the hashes of its lines, lacks lines seen before; else records its newest
        line.

        Raises:
            StoreError: the file of accepted heads is damaged.
        """
        if self.seen is None or not hashes:
            return None
        known, log = _seen(self.seen), f"log {hashes[0]}"
        number, hash_ = known.get(log, (0, ""))
        if number > len(hashes) or (number and hashes[number - 1] != hash_):
            return "a line seen earlier is missing or different: the log was rolled back or rewritten"
        if len(hashes) > number:
            make_folders(self.seen.parent)
            known[log] = (len(hashes), hashes[-1])
            write_atomic(self.seen, f"{json.dumps(known, indent=1, sort_keys=True)}\n".encode())
        return None


UNSIGNED = Trust()
"""Heads in the folder of the corpus, without signatures."""


def _seen(file: Path) -> dict[str, tuple[int, str]]:
    if not exists(file):
        return {}
    try:
        known = json.loads(read_whole(file))
        return {str(corpus): (int(number), str(hash_)) for corpus, (number, hash_) in known.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"Expected heads by corpus, got a damaged file - at {file}", hint="remove it.") from error


def _message(head: Head) -> str:
    return f"{_SIGNED}{head.text}"


@lru_cache(maxsize=8)
def _private(file: Path) -> Any:
    """An Ed25519 private key.

    Raises:
        InputError: the file contains none, or one that needs a passphrase.
    """
    return _loaded(file, "private", lambda data: _crypto("primitives.serialization").load_pem_private_key(data, None))


@lru_cache(maxsize=8)
def _public(file: Path) -> Any:
    """An Ed25519 public key.

    Raises:
        InputError: the file contains none.
    """
    return _loaded(file, "public", lambda data: _crypto("primitives.serialization").load_pem_public_key(data))


def _loaded(file: Path, kind: str, load: Callable[[bytes], Any]) -> Any:
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
    name = f"cryptography.{module if module == 'exceptions' else f'hazmat.{module}'}"
    try:
        return import_module(name)
    except ImportError as error:
        raise InputError(
            "Expected the package cryptography, got none",
            hint="install it with `pip install 'scoped-retrieval[sign]'`.",
        ) from error
