"""The selected encoder, and how it is reached: the settings as one value.

Gives: `EncoderChoice`, `Served` (`URL#MODEL`) and the prefixes of the names. Nothing is loaded or contacted
here.

Note: the profile of a corpus never determines where a text is sent. A corpus may come from elsewhere; a server receives
questions only if the caller's settings name it.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...nodes.errors import InputError

OPENAI = "openai:"
"""Prefix of the name of a model on a server that has `/v1/embeddings`: `openai:http://localhost:8000#bge-m3`."""
SENTENCE_TRANSFORMERS = "sentence-transformers:"
"""... of a model in a folder in the layout of sentence-transformers."""
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True)
class Served:
    """A model on a server: `URL#MODEL`."""

    url: str
    model: str

    @classmethod
    def of(cls, given: str, at: str) -> Served:
        """The two parts after `openai:`.

        Raises:
            InputError: a part is missing, or the address is not allowed.
        """
        url, _, model = given.partition("#")
        expect_address(url, at)
        if not model.strip() or not model.isprintable():
            raise InputError.described("URL#MODEL", "no model", at, hint="such as openai:http://localhost:8000#bge-m3")
        return cls(url.rstrip("/"), model.strip())

    def __str__(self) -> str:
        return f"{self.url}#{self.model}"


@dataclass(frozen=True)
class EncoderChoice:
    """The encoder that is chosen, and how models and servers are reached.

    Prompts precede texts; None leaves them to the model's own configuration, "" means no prompt.
    """

    name: str = "minilm/1"
    query_prompt: str | None = None
    passage_prompt: str | None = None
    key_variable: str | None = None
    """Name of the environment variable with the key of the server; the key itself is never stored."""

    @property
    def prompts_mark(self) -> str:
        """The part of the prompts in a profile: empty where both are left to the model."""
        given = (self.query_prompt, self.passage_prompt)
        if given == (None, None):
            return ""
        prompts = "\0".join("-" if prompt is None else f"={prompt}" for prompt in given)
        return f"+prompts-{hashlib.sha256(prompts.encode()).hexdigest()[:8]}"


def expect_address(url: str, at: str) -> None:
    """Refuse anything but a plain http or https address. The value is not quoted: it may contain a password.

    Raises:
        InputError: it is not an address, or has a user, a query or a fragment.
    """
    try:
        parts = urlsplit(url)
        plain = parts.port != 0
    except ValueError:
        raise InputError.described("an http or https address", "one that is malformed", at) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain or not url.isprintable() or " " in url:
        raise InputError.described("an http or https address", "something else", at)
    if parts.username is not None or parts.password is not None or parts.query or "?" in url:
        hint = "keys are read from an environment variable; its name is the setting encoder_key_variable"
        raise InputError.described("an address without a user, a password or a query", "one with such", at, hint=hint)


def expect_variable(given: str, at: str) -> None:
    """Refuse anything but the name of an environment variable; the value is not quoted, as it may be a key.

    Raises:
        InputError: it has other characters than capitals, digits and underscores.
    """
    if not _VARIABLE.fullmatch(given):
        hint = "export the key under a name such as EMBEDDINGS_KEY, and set that name here"
        raise InputError.described("the name of an environment variable in capitals", "something else", at, hint=hint)


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
