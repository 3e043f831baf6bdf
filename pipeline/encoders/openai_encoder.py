"""An embedding model of any server with `/v1/embeddings`: vLLM, TEI, llama.cpp, LM Studio, or a paid service.

Gives: `OpenAIEncoder`, which the corpus and the driver use like the bundled encoder. It sends the stored texts of rows,
questions, and `PROBE`, and nothing before a vector or the profile is needed. Each text has a request of its own: in a
batch, its neighbors would change the last bits of its vector.

Note: a server does not report which weights it has, and on an accelerator the last bits of its answers vary from day to
day. The profile contains URL, model, dimension and a sketch of the answer to a fixed text; a server whose answer matches
the profile of a corpus, up to that rounding, adopts that profile, and any other keeps its own.

Answers have a deadline and a maximum size, retries are limited, redirects are not followed, as urllib would send the key
there, and an error says what was expected, what came and where: never a text that was sent, the body of an answer, or a key.

A sketch is the signs of the products of a vector with 256 fixed directions (Charikar 2002, SimHash): for two
vectors at an angle of a, a share of a/pi of the signs differs. Rounding on a server changes none or one of the 256,
another model half of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import ModelError
from .choice import OPENAI, EncoderChoice, Served, is_loopback
from .unit_vectors import each_once, rounded

PROBE = "The default role of a new account is guest."
"""The text whose vector identifies a model."""
_DIRECTIONS = 256
"""The number of signs."""
_MOVED = 8
"""The number of the 256 signs that may differ between two answers of one model."""
_NOT_FINITE = "the model overflows: serve it in float32 or bfloat16 in place of float16"
_NO_ENCODER = "serve it as an embedding model; the server may need a flag for that"
_REPLACED = "the server changed its model: serve the one before, or index into another corpus"


class OpenAIEncoder:
    """Texts to unit vectors times 2**15, int16[texts, dimensions]."""

    def __init__(self, choice: EncoderChoice, known: str | None = None) -> None:
        """`known` is the profile of the corpus, which the server may turn out to match.

        Raises:
            InputError: the name of the choice has no address or no model.
        """
        self._choice, self._known = choice, known
        self.served = Served.of(choice.name.removeprefix(OPENAI), "encoder")
        self.name = f"{OPENAI}{self.served}"
        """The start of the profile."""
        self._endpoint = Endpoint(self.served.url, f"vectors of {self.served.model}", choice.key_variable)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process contacts the server itself, with its own key, and has to find the same model."""
        return OpenAIEncoder, (self._choice, self._probed[0] if "_probed" in vars(self) else self._known)

    @property
    def profile(self) -> str:
        """URL, model, dimension, and the sketch of the answer to the probe: those of the known profile, if this server has
        that model and is asked as it was for the corpus.

        Raises:
            ModelError: the server does not answer with vectors.
        """
        return self._probed[0]

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per passage; equal texts are sent once.

        Raises:
            ModelError: the server does not answer with one vector of the known length for each text, or its model has
                changed since it was probed.
        """
        return self._encoded(self._choice.passage_prompt, texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per question; otherwise like `encode`."""
        return self._encoded(self._choice.query_prompt, texts)

    def _encoded(self, prompt: str | None, texts: Sequence[str]) -> NDArray[np.int16]:
        profile, dimensions = self._probed

        def vectors(distinct: list[str]) -> NDArray[np.int16]:
            found = rounded(np.stack([self._vector((prompt or "") + text, dimensions) for text in distinct]))
            # Checked afterwards: a model that was replaced half-way is refused too.
            if not _same_sketch(_sketch(self._vector(PROBE, dimensions)), profile.rpartition("+")[2]):
                raise self._endpoint.error("another model than before", _REPLACED)
            return found

        return each_once(texts, vectors, dimensions)

    @cached_property
    def _probed(self) -> tuple[str, int]:
        """Profile and dimension."""
        vector = self._vector(PROBE)
        if not vector.any():
            raise self._endpoint.error("a vector of zeros", _NO_ENCODER)
        start, sketch = f"{self.name}+{len(vector)}{self._choice.prompts_mark}", _sketch(vector)
        known, _, other = (self._known or "").rpartition("+")
        return f"{start}+{other if known == start and _same_sketch(sketch, other) else sketch}", len(vector)

    def _vector(self, text: str, dimensions: int | None = None) -> NDArray[np.float64]:
        """The vector of a text; of the known length, if any."""
        error = self._endpoint.error
        found = self._endpoint.ask({"model": self.served.model, "input": [text], "encoding_format": "float"}).get(
            "data"
        )
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise error("no list of vectors", _NO_ENCODER)
        if len(found) != 1:
            raise error(f"{len(found)} vectors for one text")
        numbers = found[0].get("embedding")
        if not numbers or not isinstance(numbers, list):
            raise error("no vector", _NO_ENCODER)
        if not all(type(number) is float and isfinite(number) for number in numbers):
            raise error("a vector with a value that is not a number", _NOT_FINITE)
        if dimensions not in (None, len(numbers)):
            raise error(f"a vector of {len(numbers)} numbers in place of {dimensions}", _REPLACED)
        return np.array(numbers)


def _sketch(vector: NDArray[np.float64]) -> str:
    """The signs as 64 hexadecimal digits."""
    greatest = np.abs(vector).max() or 1.0  # sums of great numbers would not fit a float64
    return np.packbits(_directions(len(vector)) @ (vector / greatest) > 0).tobytes().hex()


def _same_sketch(one: str, other: str) -> bool:
    """Whether two sketches are of one model, up to rounding."""
    try:
        differing = int(one, 16) ^ int(other, 16)
    except ValueError:
        return False
    return len(one) == len(other) and differing.bit_count() <= _MOVED


@lru_cache(maxsize=4)
def _directions(dimensions: int) -> NDArray[np.float64]:
    """float64[256, dimensions] of 1 and -1, the same everywhere."""
    size = _DIRECTIONS * dimensions
    stream = hashlib.shake_256(b"scoped-retrieval probe/1").digest(-(-size // 8))
    bits = np.unpackbits(np.frombuffer(stream, dtype=np.uint8))[:size]
    return 2 * bits.reshape(_DIRECTIONS, dimensions).astype(np.float64) - 1


TIMEOUT_SECONDS = 60.0
"""The time that a server has for one answer."""
TRIES = 3
"""The maximum number of tries if the server is busy or the connection breaks."""
PAUSE_SECONDS = 0.5
"""The pause before the second try; twice as long before the third. Servers may request up to
`LONGEST_PAUSE_SECONDS`."""
LONGEST_PAUSE_SECONDS = 10.0
MOST_BYTES = 1 << 28
"""The maximum size of an answer."""
_PIECE = 1 << 16
_BUSY = (429, 502, 503, 504)
_HINT = (
    "see the log of the server, and compare URL and model with what it lists at /v1/models; encoder_key_variable names the "
    "variable with its key"
)


@dataclass(frozen=True)
class Endpoint:
    """A server at a URL."""

    url: str
    expected: str
    """The expectation in errors: `vectors of MODEL`."""
    key_variable: str | None = None
    timeout_seconds: float = TIMEOUT_SECONDS

    def ask(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that the server returns for a body; its numbers are floats.

        Raises:
            ModelError: there is no answer in time, or it is not an object.
        """
        from http.client import HTTPException  # here: without a server, the HTTP modules are not loaded
        from urllib.error import HTTPError, URLError
        from urllib.request import Request

        address = f"{self.url.removesuffix('/v1')}/v1/embeddings"
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._key()}
        request = Request(address, data=json.dumps(body).encode(), headers=headers)
        for number in range(TRIES):
            pause, again = PAUSE_SECONDS * 2**number, False
            try:
                with self._open(request, timeout=self.timeout_seconds) as response:
                    found = json.loads(_read(response, time.monotonic() + self.timeout_seconds), parse_int=float)
                if isinstance(found, dict):
                    return found
                got = "JSON that is no object"
            except HTTPError as error:
                with error:
                    asked = error.headers.get("Retry-After", "") if error.headers else ""
                pause = min(float(asked), LONGEST_PAUSE_SECONDS) if asked.isdecimal() else pause
                got, again = f"HTTP status {error.code}", error.code in _BUSY
            except URLError as error:
                got = self._lost(error.reason if isinstance(error.reason, Exception) else error)
            except (OSError, HTTPException) as error:
                got, again = self._lost(error), isinstance(error, (ConnectionError, HTTPException))
            except (ValueError, RecursionError):
                got = "a response that is not JSON"
            if not again or number + 1 == TRIES:
                raise self.error(got)
            time.sleep(pause)
        raise AssertionError  # the last try returned or raised

    def error(self, got: str, hint: str = _HINT) -> ModelError:
        """An error about this server."""
        return ModelError(f"Expected {self.expected}, got {got}", at=self.url, hint=hint)

    def _lost(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self.timeout_seconds:g} s"
        return "no server" if isinstance(error, ConnectionRefusedError) else f"no answer ({type(error).__name__})"

    def _key(self) -> dict[str, str]:
        """The header with the key, read when needed."""
        if self.key_variable is None:
            return {}
        key = os.environ.get(self.key_variable, "")
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            got = "one with other characters than a header takes" if key else "none"
            raise ModelError(
                f"Expected a key, got {got}",
                at=f"the environment variable {self.key_variable}",
                hint="export it, or unset encoder_key_variable where the server takes requests without one",
            )
        return {"Authorization": f"Bearer {key}"}

    @cached_property
    def _open(self) -> Callable[..., Any]:
        """Opens requests; those to this machine bypass any proxy."""
        from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

        class Stay(HTTPRedirectHandler):
            def redirect_request(self, *_: Any, **__: Any) -> None:
                """Not followed: the status is the answer."""

        near = is_loopback(urlsplit(self.url).hostname or "")
        return build_opener(Stay, *([ProxyHandler({})] if near else [])).open


def _read(response: Any, deadline: float) -> bytes:
    """The whole body, before the deadline."""
    parts, size = [], 0
    while part := response.read1(_PIECE):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
        if size > MOST_BYTES:
            raise OSError("too long")
    if getattr(response, "length", None):
        raise ConnectionError  # cut off: fewer bytes than were announced
    return b"".join(parts)
