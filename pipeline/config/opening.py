"""Opens, creates or finds the corpus and the runs of the settings, with their head store and signing key.

A corpus or runs that a flag, a variable or the user's file names are the user's decision. The default ones, and those of a
project file, may have come with the folder, and their rows would speak to a model as the project. They are used only if
this user made or adopted them: the state folder has the id of each, by its path.

Note: the path is not resolved, so a link to a known corpus is not known. The id of a corpus is random and in its
manifests, so files that a repository puts in their place do not have it; that of runs is the inode of their folder.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ...nodes.errors import StoreError
from ..corpus import Corpus, Trust
from ..corpus.manifest import Manifest
from ..runs import RunStore
from ..storage.durable import entries, exists, make_folders, read_whole, write_atomic
from ..storage.places import Place
from .settings import Settings

__all__ = [
    "adopt",
    "corpus_of",
    "corpus_to_upgrade",
    "expect_known",
    "head_file",
    "made_or_opened",
    "runs_of",
    "trust_of",
]


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
            made = Corpus.create(settings["corpus"], trust_of(settings))
            with suppress(OSError):  # a corpus that is named needs no state folder
                adopt(settings, "corpus")
            return made
        except StoreError:
            if not exists(head_file(settings)):
                raise  # otherwise another first import has created it in the meantime
    return corpus_of(settings)


def runs_of(settings: Settings, *, create: bool = False) -> RunStore:
    """The folder of runs, its log signed if there is a key.

    Raises:
        StoreError: there is none, or it cannot be created.
    """
    place = settings["runs"]
    new = create and isinstance(place, Path) and not entries(place)
    store = RunStore(place, create=create, signer=trust_of(settings))
    if new:
        with suppress(OSError):
            adopt(settings, "runs")
    return store


def head_file(settings: Settings) -> Place:
    """The file that names the current generation; without it, there is no corpus."""
    return trust_of(settings).place(settings["corpus"]) / "CURRENT"


def trust_of(settings: Settings) -> Trust:
    """The head settings. Accepted heads are recorded if signatures are required."""
    trusted = settings["trusted_key"]
    seen = _state_folder() / "heads.json" if trusted else None
    return Trust(settings["corpus_head"], settings["signing_key"], trusted, seen)


def expect_known(settings: Settings, name: str) -> None:
    """Check that the `corpus` or `runs` is absent, chosen by the user, or made or adopted by the user.

    Raises:
        StoreError: it is none of these.
    """
    origin = settings.origin(name)
    if not origin.startswith(("default", "project file")) or (id_ := _id_of(settings, name)) is None:
        return
    if not exists(known := _known_file(settings[name])) or read_whole(known).decode() != id_:
        raise StoreError(
            f"Expected {name} that you made or adopted, got another - at {settings[name]}",
            hint="a repository may have brought it. Remove it to make your own, name it with "
            f"--{name} to use it in one command, or put --adopt before the command to use it from now on.",
        )


def adopt(settings: Settings, *names: str) -> None:
    """Remember the `corpus`, the `runs` or both as this user's, where they exist.

    Raises:
        StoreError: the state folder cannot be written.
    """
    for name in names:
        if (id_ := _id_of(settings, name)) is not None:
            make_folders((known := _known_file(settings[name])).parent)
            write_atomic(known, id_.encode())


def _id_of(settings: Settings, name: str) -> str | None:
    """The id of the corpus or of the runs; None if there are none, none that can be opened, or they are at a URL."""
    place = settings[name]
    if not isinstance(place, Path):
        return None
    if name == "runs":
        return str(place.stat().st_ino) if entries(place) else None
    with suppress(StoreError):
        return Manifest.read(place, trust=replace(trust_of(settings), trusted_key=None, seen=None)).corpus_id
    return None


def _known_file(place: Place) -> Path:
    return _state_folder() / "known" / hashlib.sha256(str(place).encode()).hexdigest()


def _state_folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_state_dir("scoped-retrieval", appauthor=False))
