"""Opens, creates or finds the corpus of the settings, with their head store and signing key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ...nodes.errors import StoreError
from ..corpus import Corpus, Trust
from ..runs import RunStore
from ..storage.durable import exists
from ..storage.places import Place
from .settings import Settings

__all__ = ["corpus_of", "corpus_to_upgrade", "head_file", "made_or_opened", "runs_of", "trust_of"]


def corpus_of(settings: Settings, generation: str | None = None) -> Corpus:
    """The corpus at its current generation, or at a pinned one.

    Raises:
        StoreError: there is no corpus or generation, its head is not trusted, or it cannot be read.
    """
    return Corpus.open(settings["corpus"], generation, trust_of(settings))


def corpus_to_upgrade(settings: Settings) -> Corpus:
    """The corpus without a check of its head: an upgrade signs an unsigned one.

    Raises:
        StoreError: there is no corpus, or it cannot be read.
    """
    return Corpus.open(settings["corpus"], trust=replace(trust_of(settings), trusted_key=None, seen=None))


def made_or_opened(settings: Settings) -> Corpus:
    """The corpus, created if there is none.

    Raises:
        StoreError: it can be neither opened nor created.
    """
    if not exists(head_file(settings)):
        try:
            return Corpus.create(settings["corpus"], trust_of(settings))
        except StoreError:
            if not exists(head_file(settings)):
                raise  # otherwise another first import has created it in the meantime
    return corpus_of(settings)


def runs_of(settings: Settings, *, create: bool = False) -> RunStore:
    """The folder of runs, its log signed if there is a key.

    Raises:
        StoreError: there is none, or it cannot be created.
    """
    return RunStore(settings["runs"], create=create, signer=trust_of(settings))


def head_file(settings: Settings) -> Place:
    """The file that names the current generation; without it, there is no corpus."""
    return trust_of(settings).place(settings["corpus"]) / "CURRENT"


def trust_of(settings: Settings) -> Trust:
    """The head settings. Accepted heads are recorded if signatures are required."""
    trusted = settings["trusted_key"]
    seen = _seen_file() if trusted else None
    return Trust(settings["corpus_head"], settings["signing_key"], trusted, seen)


def _seen_file() -> Path:
    import platformdirs

    return Path(platformdirs.user_state_dir("scoped-retrieval", appauthor=False)) / "heads.json"
