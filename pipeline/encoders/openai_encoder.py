"""An embedding model of any server with `/v1/embeddings`: vLLM, TEI, llama.cpp, LM Studio, or a paid service.

Gives: `OpenAIEncoder`, which the corpus and the driver use like the bundled encoder. It sends the stored texts of rows,
questions, and the texts of `probe`, and nothing before a vector or the profile is needed.

Note: a server does not report which weights it has, and on an accelerator the last bits of its answers vary from day to
day. The profile contains URL, model, dimension and a sketch of the answers to fixed texts; a server whose answers match
the profile of a corpus, up to that rounding, adopts that profile, and any other keeps its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .choice import OPENAI, EncoderChoice, Served
from .endpoint import Endpoint
from .probe import PROBES, reads_alone, same_sketch, sketch_of
from .unit_vectors import rounded

__all__ = ["BATCH", "OpenAIEncoder"]

BATCH = 32
"""The number of texts per request, if neighbors have no effect."""
_ALONE, _TOGETHER = "alone", "together"
_SAME = 0.999
"""The minimum cosine of a probe with its earlier vector: below it, the server has a different model."""
_NOT_FINITE = "the model overflows: serve it in float32 or bfloat16 in place of float16"
_TOO_FEW = "the server returned too few results: see its log for a limit on texts per request, or update it"
_NO_ENCODER = "serve it as an embedding model; the server may need a flag for that"
_REPLACED = "the server changed its model: serve the one before, or index into another corpus"


class _Probed(NamedTuple):
    profile: str
    alone: bool
    dimensions: int
    first: NDArray[np.float64]
    """The vector of the first probe."""


class OpenAIEncoder:
    """Texts to unit vectors times 2**15, int16[texts, dimensions]."""

    def __init__(self, choice: EncoderChoice, known: str | None = None) -> None:
        """`known` is the profile of the corpus, which the server may turn out to match.

        Raises:
            InputError: the name of the choice has no address or no model.
        """
        self._choice, self._expected_profile = choice, known
        self.served = Served.of(choice.name.removeprefix(OPENAI), "encoder")
        url = self.served.url
        self._path = "/embeddings" if url.endswith("/v1") else "/v1/embeddings"
        self._endpoint = Endpoint(
            url,
            f"vectors of {self.served.model}",
            key_variable=choice.key_variable,
            timeout_seconds=choice.timeout_seconds,
        )
        self._state: _Probed | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process contacts the server itself, with its own key, and has to find the same model."""
        return OpenAIEncoder, (self._choice, self._state.profile if self._state else self._expected_profile)

    @property
    def profile(self) -> str:
        """URL, model, dimension, how texts are sent, and the sketch of the answers to the probes.

        Raises:
            ModelError: the server does not answer with vectors.
        """
        return self._probed().profile

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per passage; equal texts are sent once.

        Raises:
            ModelError: the server does not answer with one vector of the known length for each text, or its model has
                changed since it was probed.
        """
        return self._encoded(self._choice.prompts.passage, texts)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.int16]:
        """One row per question; otherwise like `encode`."""
        return self._encoded(self._choice.prompts.query, texts)

    def _encoded(self, prompt: str | None, texts: Sequence[str]) -> NDArray[np.int16]:
        probed = self._probed()
        if not len(texts):
            return np.zeros((0, probed.dimensions), dtype=np.int16)
        places = {text: at for at, text in enumerate(dict.fromkeys(texts))}
        sent = [(prompt or "") + text[: self._choice.max_chars] for text in places]
        step = 1 if probed.alone else BATCH
        found = np.vstack([self._vectors(sent[at : at + step], probed.dimensions) for at in range(0, len(sent), step)])
        # Checked afterwards: a model that was replaced half-way is refused too.
        if _cosine(self._vectors(PROBES[:1], probed.dimensions)[0], probed.first) < _SAME:
            raise self._endpoint.error("another model than before", _REPLACED)
        return rounded(found)[[places[text] for text in texts]]

    def _probed(self) -> _Probed:
        if self._state is None:
            first = self._vectors(PROBES[:1], None)
            dimensions = first.shape[1]
            alone = np.vstack([first, *(self._vectors([text], dimensions) for text in PROBES[1:])])
            if not alone.any(axis=1).all():
                raise self._endpoint.error("a vector of zeros", _NO_ENCODER)
            profile = self._profile(alone)
            self._state = _Probed(profile, f"+{_ALONE}+" in profile.removeprefix(self.name), dimensions, alone[0])
        return self._state

    @property
    def name(self) -> str:
        """The start of the profile."""
        return f"{OPENAI}{self.served}"

    def _profile(self, alone: NDArray[np.float64]) -> str:
        """The known profile, if this server has that model and can encode the way the corpus was encoded."""
        dimensions, sketch = alone.shape[1], sketch_of(alone)
        cut = f"+{self._choice.max_chars}chars" if self._choice.max_chars else ""
        start = f"{self.name}+{dimensions}{cut}{self._choice.prompts.mark}"
        known, _, other = (self._expected_profile or "").rpartition("+")
        same = same_sketch(sketch, other)
        if same and known == f"{start}+{_ALONE}":
            return f"{known}+{other}"
        dependent = reads_alone(lambda texts: self._vectors(texts, dimensions), alone)
        if same and known == f"{start}+{_TOGETHER}" and not dependent:
            return f"{known}+{other}"
        return f"{start}+{_ALONE if dependent else _TOGETHER}+{sketch}"

    def _vectors(self, texts: Sequence[str], dimensions: int | None) -> NDArray[np.float64]:
        """Vectors of some texts in one request, each divided by its greatest component; of the known length, if any."""
        body = {"model": self.served.model, "input": list(texts), "encoding_format": "float"}
        found = self._endpoint.ask(self._path, body).get("data")
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self._endpoint.error("no list of vectors", _NO_ENCODER)
        if len(found) != len(texts):
            raise self._endpoint.error(f"{len(found)} of {len(texts)} vectors", _TOO_FEW)
        by_index = {each.get("index", at): self._row(each.get("embedding")) for at, each in enumerate(found)}
        if by_index.keys() != set(range(len(texts))):
            raise self._endpoint.error("vectors of other texts than were sent")
        lengths = {len(row) for row in by_index.values()}
        if len(lengths) > 1:
            raise self._endpoint.error("vectors of several lengths")
        if dimensions not in (None, *lengths):
            raise self._endpoint.error(f"a vector of {max(lengths)} numbers in place of {dimensions}", _REPLACED)
        return np.stack([by_index[at] for at in range(len(texts))])

    def _row(self, found: Any) -> NDArray[np.float64]:
        if not found or not isinstance(found, list):
            raise self._endpoint.error("no vector", _NO_ENCODER)
        if all(type(number) in (int, float) for number in found):
            with suppress(OverflowError):
                row = np.array(found, dtype=np.float64)
                if np.isfinite(row).all():
                    return row / (np.abs(row).max() or 1.0)
        raise self._endpoint.error("a vector with a value that is not a number", _NOT_FINITE)


def _cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0
