"""A cross-encoder of any server with `/v1/rerank`: vLLM, TEI behind a gateway, llama.cpp, Jina, Cohere.

Gives: `RerankEndpoint`, which the driver uses like one from a folder. It sends questions, as they are recorded, the
stored texts of candidates that passed every gate, and a few fixed pairs at first use.

Note: servers return a probability or its logit, both under the same name. The fixed pairs decide: if one of their
scores is outside of [0, 1], scores are logits, and the sigmoid is applied; otherwise such a score is an error. The
profile includes the scores of the fixed pairs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...nodes.columns.numbers import quantise
from .choice import DEFAULT_TIMEOUT_SECONDS, RERANK, Served
from .endpoint import NOT_FINITE, WRONG_MODEL, Endpoint, numbers, one_per_text

__all__ = ["BATCH", "PROBE_QUESTION", "PROBE_TEXTS", "RerankEndpoint"]

BATCH = 32
"""The number of texts per request, if neighbors have no effect."""
PROBE_QUESTION = "which role does a new account have"
PROBE_TEXTS = (
    "The default role of a new account is guest.",
    "Migrations run in order of their numbers. " * 6,
    "def retry(times: int) -> None: raise TimeoutError(times)",
    "a",
)
_STEPS = 2.0**10
"""Scores are rounded to multiples of 2**-10, as logits of a folder's model are."""
_NO_RERANKER = "serve it as a reranking model; the server may need a flag for that"

Pair = tuple[str, str]


class _Probed(NamedTuple):
    profile: str
    alone: bool
    logits: bool


class RerankEndpoint:
    """Pairs of question and text to scores of [0, 1]."""

    def __init__(
        self,
        name: str,
        key_variable: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        known: str | None = None,
    ) -> None:
        """`name` is `rerank:URL#MODEL`; `known` is the profile that the server must have.

        Raises:
            InputError: it has no address or no model.
        """
        self._given, self._expected_profile = (name, key_variable, timeout_seconds), known
        self.served = Served.of(name.removeprefix(RERANK), "cross_encoder", RERANK)
        self._path = "/rerank" if self.served.url.endswith(("/v1", "/v2")) else "/v1/rerank"
        self._endpoint = Endpoint(
            self.served.url,
            f"scores of {self.served.model}",
            WRONG_MODEL,
            key_variable=key_variable,
            key_setting="cross_encoder_key_variable",
            timeout_seconds=timeout_seconds,
        )
        self._state: _Probed | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process contacts the server itself, with its own key, and refuses a different model."""
        return RerankEndpoint, (*self._given, self._state.profile if self._state else self._expected_profile)

    @property
    def profile(self) -> str:
        """URL, model, the form of requests, the kind of scores, and a digest of the scores of the fixed pairs.

        Raises:
            ModelError: the server does not answer with scores.
        """
        return self._probed().profile

    def scores(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """One score per pair, a multiple of 2**-30.

        Raises:
            ModelError: the server does not answer with one finite score for each text.
        """
        probed = self._probed()
        found = dict[Pair, float]()
        for question, group in groupby(sorted(set(pairs)), key=lambda pair: pair[0]):
            texts = [text for _, text in group]
            step = 1 if probed.alone else BATCH
            for at in range(0, len(texts), step):
                some = texts[at : at + step]
                found |= zip(((question, text) for text in some), self._raw(question, some).tolist(), strict=True)
        raw = np.array([found[pair] for pair in pairs], dtype=np.float64)
        if not probed.logits and len(raw) and (raw.min() < 0 or raw.max() > 1):
            raise self._endpoint.error("a score outside of 0 to 1, which it gave for no fixed pair")
        return quantise(1.0 / (1.0 + np.exp(-np.clip(raw, -64, 64))) if probed.logits else raw)

    def _probed(self) -> _Probed:
        if self._state is None:
            alone = np.concatenate([self._raw(PROBE_QUESTION, [text]) for text in PROBE_TEXTS])
            orders = (slice(None), slice(None, None, -1))
            dependent = any(
                not np.array_equal(self._raw(PROBE_QUESTION, PROBE_TEXTS[order]), alone[order]) for order in orders
            )
            logits = bool(alone.min() < 0 or alone.max() > 1)
            how = ("alone" if dependent else "together", "logits" if logits else "shares")
            sketch = hashlib.sha256(",".join(map(repr, alone.tolist())).encode()).hexdigest()[:16]
            profile = f"{RERANK}{self.served}+{'+'.join(how)}+{sketch}"
            if self._expected_profile not in (None, profile):
                raise self._endpoint.error("another model than before")
            self._state = _Probed(profile, dependent, logits)
        return self._state

    def _raw(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """The server's scores of some texts in one request, in multiples of 2**-10."""
        body = {"model": self.served.model, "query": question, "documents": list(texts), "top_n": len(texts)}
        results = self._endpoint.ask(self._path, body).get("results")
        found = one_per_text(self._endpoint, results, len(texts), "scores", _NO_RERANKER, numbered=True)
        scores = numbers([each.get("relevance_score") for each in found])
        if scores is None:
            raise self._endpoint.error("a score that is no number", NOT_FINITE)
        return np.rint(np.clip(scores, -1e6, 1e6) * _STEPS) / _STEPS
