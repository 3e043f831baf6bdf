"""Opens, creates or finds the corpus and the runs of the settings, with their signing key.

A corpus or runs that a flag, a variable or the user's file names are the user's decision. Those in `.scoped-retrieval` or
of a project file may have come with the folder, and their rows would speak to a model as the project. They
are used only if this user made or adopted them (the state folder has the id of each, by its path), and Git tracks no file
of theirs: a pull could replace it.

Note: the path is not resolved, so a link to a known corpus is not known. The id of a corpus is random and in its
manifests, so files that a repository puts in their place do not have it; that of runs is the inode of their folder.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from ...nodes.errors import InputError, StoreError, VerificationError
from ..corpus import Corpus
from ..corpus.manifest import Manifest, chain_of
from ..runs import Runs
from ..sources.git_commands import Git, work_tree_root
from ..storage.durable import entries, exists, make_folders, read_whole, write_atomic
from ..storage.places import Place, user_folder
from ..storage.signing import Signer
from .settings import FOLDER, Settings


def corpus_of(settings: Settings, generation: str | None = None) -> Corpus:
    """The corpus at its current generation, or at a pinned one.

    Raises:
        StoreError: there is no corpus or generation, its head is not trusted, or it cannot be read.
    """
    return Corpus.open(settings["corpus"], generation, signer_of(settings))


def made_or_opened(settings: Settings) -> Corpus:
    """The corpus, created if there is none.

    Raises:
        StoreError: it can be neither opened nor created.
    """
    if head_of(settings) is None:
        try:
            made = Corpus.create(settings["corpus"], signer_of(settings))
            if _of_a_folder(settings, "corpus"):
                adopt(settings, "corpus")
            return made
        except StoreError:
            if head_of(settings) is None:
                raise  # otherwise another first import has created it in the meantime
    return corpus_of(settings)


def runs_of(settings: Settings, *, create: bool = False) -> Runs:
    """The folder of runs, its log signed if there is a key.

    Raises:
        StoreError: there is none, or it cannot be created.
    """
    place = settings["runs"]
    new = create and isinstance(place, Path) and not entries(place)
    store = Runs(place, create=create, signer=signer_of(settings))
    if new and _of_a_folder(settings, "runs"):
        adopt(settings, "runs")
    return store


def head_of(settings: Settings) -> str | None:
    """The hash of the last line of the corpus; None if there is no corpus.

    Raises:
        StoreError: it cannot be read now.
        VerificationError: the line was changed, or is not signed with the trusted key.
    """
    last = chain_of(settings["corpus"], signer_of(settings)).last()
    return last.hash if last else None


def signer_of(settings: Settings) -> Signer:
    """The keys of the corpus and of the log of runs."""
    return Signer(settings["signing_key"], settings["trusted_key"])


def expect_known(settings: Settings, name: str) -> None:
    """Check that the `corpus` or `runs` is absent, chosen by the user, or made or adopted by the user and not tracked by
    Git.

    Raises:
        StoreError: it is none of these.
    """
    if not _of_a_folder(settings, name) or (id_ := _id_of(settings, name)) is None:
        return
    if not exists(known := _known_file(settings[name])) or read_whole(known).decode() != id_:
        raise StoreError(
            f"Expected {name} that you made or adopted, got another",
            at=settings[name],
            hint="a repository may have brought it. Remove it to make your own, or put --adopt before the command to "
            "use it from now on.",
        )


def expect_untracked(settings: Settings, name: str) -> None:
    """Check that Git tracks no file of the `corpus` or `runs` of a folder: a commit of another user could replace it.

    Raises:
        StoreError: it tracks one.
    """
    place = settings[name]
    if _of_a_folder(settings, name) and (root := work_tree_root(place)) is not None:
        with suppress(InputError):  # where git cannot list files, no pull replaced one
            if Git(root).run(
                "ls-files", "-z", "--", f":(literal){(place.parent.resolve() / place.name).relative_to(root)}"
            ):
                raise StoreError(
                    f"Expected {name} that Git does not track, got files in its index",
                    at=place,
                    hint=f"`git rm -r --cached {place}` takes them out; --adopt before the command uses them this once.",
                )


def adopt(settings: Settings, *names: str) -> None:
    """Remember the `corpus`, the `runs` or both as this user's, where they exist.

    Raises:
        StoreError: the state folder cannot be written.
    """
    for name in names:
        if (id_ := _id_of(settings, name)) is not None:
            known = _known_file(settings[name])
            try:
                make_folders(known.parent)
                write_atomic(known, id_.encode())
            except OSError as error:
                raise StoreError(
                    f"Expected a folder to remember the {name} of this user in, got {error.strerror}",
                    at=known.parent,
                    hint="XDG_STATE_HOME names the folder of the state of your programs.",
                ) from error


def _of_a_folder(settings: Settings, name: str) -> bool:
    """Whether a local place is one that a folder, and not its user, may have brought."""
    place, origin = settings[name], settings.origin(name)
    return isinstance(place, Path) and (origin.startswith(("default", "project file")) or place.parent.name == FOLDER)


def _id_of(settings: Settings, name: str) -> str | None:
    """The id of the corpus or of the runs; None if there are none, none that can be opened, or they are at a URL."""
    place = settings[name]
    if not isinstance(place, Path):
        return None
    if name == "runs":
        return str(place.stat().st_ino) if entries(place) else None
    with suppress(StoreError, VerificationError):
        chain = chain_of(place)
        return Manifest.read(place, chain).corpus_id
    return None


def _known_file(place: Place) -> Path:
    return user_folder("state") / "known" / hashlib.sha256(str(place).encode()).hexdigest()
