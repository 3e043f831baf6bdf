"""An embedding model of a local Ollama server: optional, and contacted only if the user chose it.

Gives: `OllamaEncoder`, which the corpus and the driver use like the bundled encoder. The server is the local one unless
a URL is set. Each text is sent alone, so its vector depends on no other.

Note: the profile includes the digest of the model's files. A model that was pulled again has another profile, and
vectors of two profiles are never compared: an encoder keeps its first profile, and returns no vector of any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .choice import DEFAULT_TIMEOUT_SECONDS, DEFAULT_URL, NO_PROMPTS, OLLAMA, Prompts, expect_address
from .endpoint import NOT_FINITE, Endpoint, numbers
from .unit_vectors import rounded

__all__ = ["DEFAULT_MODEL", "DEFAULT_URL", "OllamaEncoder"]

DEFAULT_MODEL = "nomic-embed-text"
_START = "start the server with `ollama serve`, or correct ollama_url"
_FETCH = "fetch the model with `ollama pull {}`; it must be an embedding model"


class OllamaEncoder:
    """Texts to unit vectors times 2**15, int16[texts, dimensions]."""

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        url: str = DEFAULT_URL,
        prompts: Prompts = NO_PROMPTS,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        """The server is not contacted before the first vector or the profile is needed.

        Raises:
            InputError: `url` is not an http or https address.
        """
        expect_address(url, "ollama_url")
        self.model, self.url = model, url.rstrip("/")
        self._prompts, self._timeout = prompts, timeout_seconds
        self._endpoint = Endpoint(
            self.url, f"vectors of {model}", _FETCH.format(model), _START, timeout_seconds=timeout_seconds
        )
        self._profile: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process contacts the server itself."""
        return OllamaEncoder, (self.model, self.url, self._prompts, self._timeout)

    @property
    def profile(self) -> str:
        """Name of the model, and the start of its digest at first use.

        Raises:
            ModelError: the server does not answer, does not have the model, or does not report its digest.
        """
        self._profile = self._profile or self._served()
        return self._profile

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per passage; equal texts are sent once.

        Raises:
            ModelError: the server does not answer with one vector of the same length for each text, or the model is no
                longer that of `profile`.
        """
        return self._encoded(self._prompts.passage or "", texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per question; otherwise like `encode`."""
        return self._encoded(self._prompts.query or "", texts)

    def _encoded(self, prompt: str, texts: Sequence[str]) -> NDArray[np.int16]:
        if not len(texts):
            return rounded(np.zeros((0, 0)))
        own = self.profile
        known = {text: self._vector(prompt + text) for text in dict.fromkeys(texts)}
        if len({len(vector) for vector in known.values()}) > 1:
            raise self._endpoint.error("vectors of several lengths")
        if self._served() != own:  # checked afterwards: a model that was replaced half-way is refused too
            raise self._endpoint.error("another version of the model than before")
        return rounded(np.stack([known[text] for text in texts]))

    def _served(self) -> str:
        """The profile of the model as the server has it now."""
        for found in self._endpoint.ask("/api/tags").get("models", ()):
            if found.get("name", "").removesuffix(":latest") == self.model.removesuffix(":latest"):
                digest = found.get("digest")
                if not isinstance(digest, str) or not (digest := digest.removeprefix("sha256:")):
                    raise self._endpoint.error("a model without a digest")
                return f"{OLLAMA}{self.model}+{digest[:16]}{self._prompts.mark}"
        raise self._endpoint.error("no such model")

    def _vector(self, text: str) -> NDArray[np.float64]:
        found = self._endpoint.ask("/api/embed", {"model": self.model, "input": [text]}).get("embeddings")
        if not isinstance(found, list) or len(found) != 1 or not isinstance(found[0], list) or not found[0]:
            raise self._endpoint.error("no vector")
        if (vector := numbers(found[0])) is None:
            raise self._endpoint.error("a vector with a value that is not a number", NOT_FINITE)
        return vector
