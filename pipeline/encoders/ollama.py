"""An embedding model of a local Ollama server: optional, and asked only where a person chose it.

Gives: `OllamaEncoder`, which the corpus and the driver use like the bundled encoder. The server is the local one unless a
URL is named. Each text is sent alone, so its vector depends on no other.

What one would otherwise get wrong: the profile holds the digest of the model's files. A model that was pulled again is
another profile, and vectors of two profiles are never compared: an encoder keeps the profile that it began with, and
gives no vector of any other.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import InputError, ModelError

__all__ = ["DEFAULT_MODEL", "DEFAULT_URL", "PREFIX", "OllamaEncoder"]

PREFIX = "ollama:"
"""What the name of such an encoder starts with: `ollama:nomic-embed-text`."""
DEFAULT_MODEL = "nomic-embed-text"
DEFAULT_URL = "http://localhost:11434"
TIMEOUT_SECONDS = 60.0
_HINT = "start the server with `ollama serve` and fetch the model with `ollama pull {}`"


class OllamaEncoder:
    """Texts to unit vectors times 2**15, int16[texts, dimensions]."""

    def __init__(self, model: str = DEFAULT_MODEL, url: str = DEFAULT_URL) -> None:
        """Nothing is asked before the first vector or the profile is needed.

        Raises:
            InputError: `url` is no http or https address.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError.expected("an http or https address", url, "ollama_url")
        self.model, self.url = model, url.rstrip("/")
        self._near = is_loopback(parts.hostname)
        self._profile: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process asks the server itself."""
        return OllamaEncoder, (self.model, self.url)

    @property
    def profile(self) -> str:
        """Name of the model, and the start of the digest that it has when this is first asked.

        Raises:
            ModelError: the server does not answer, does not have the model, or does not say its digest.
        """
        self._profile = self._profile or self._served()
        return self._profile

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per text; equal texts are asked once.

        Raises:
            ModelError: the server does not answer with one vector of the same length for each text, or the model is no
                longer that of `profile`.
        """
        if not len(texts):
            return rounded(np.zeros((0, 0)))
        own = self.profile
        known = {text: self._vector(text) for text in dict.fromkeys(texts)}
        if len({len(vector) for vector in known.values()}) > 1:
            raise self._error("vectors of several lengths")
        if self._served() != own:  # asked afterwards: a model that was replaced half-way gives no vectors either
            raise self._error("another version of the model than before")
        return rounded(np.array([known[text] for text in texts], dtype=np.float64))

    def _served(self) -> str:
        """The profile of the model as the server has it now."""
        for found in self._ask("/api/tags").get("models", ()):
            if found.get("name", "").removesuffix(":latest") == self.model.removesuffix(":latest"):
                digest = found.get("digest")
                if not isinstance(digest, str) or not (digest := digest.removeprefix("sha256:")):
                    raise self._error("a model without a digest")
                return f"{PREFIX}{self.model}+{digest[:16]}"
        raise self._error("no such model")

    def _vector(self, text: str) -> list[float]:
        found = self._ask("/api/embed", {"model": self.model, "input": [text]}).get("embeddings")
        if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], list) or not found[0]:
            raise self._error("no vector")
        if not all(isinstance(x, (int, float)) and np.isfinite(x) for x in found[0]):
            raise self._error("a vector with something that is no number")
        return found[0]

    @cached_property
    def _open(self) -> Callable[..., Any]:
        """How a request is sent. A proxy must not see what is meant for this machine."""
        from urllib.request import ProxyHandler, build_opener

        return build_opener(*([ProxyHandler({})] if self._near else [])).open

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        from urllib.error import HTTPError  # here: where nobody asks a server, nobody waits for the imports of HTTP
        from urllib.request import Request

        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, headers={"Content-Type": "application/json"})
        try:
            with self._open(request, timeout=TIMEOUT_SECONDS) as response:
                found = json.load(response)
        except HTTPError as error:
            with error:
                raise self._error(f"HTTP status {error.code}") from error
        except (OSError, ValueError) as error:
            raise self._error(type(error).__name__) from error
        if not isinstance(found, dict):
            raise self._error("JSON that is no object")
        return found

    def _error(self, got: str) -> ModelError:
        return ModelError(f"Expected vectors of {self.model}, got {got} - at {self.url}", hint=_HINT.format(self.model))


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def rounded(vectors: NDArray[np.float64]) -> NDArray[np.int16]:
    """Vectors made unit, their components rounded to multiples of 2**-15 and multiplied by 2**15; zero stays zero."""
    if not vectors.size:
        return np.zeros((len(vectors), 0), dtype=np.int16)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
    return np.clip(np.rint(unit * 2**15), -(2**15), 2**15 - 1).astype(np.int16)
