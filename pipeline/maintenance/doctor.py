"""`doctor`: checks everything needed to index, ask and replay, and lists the settings in force.

Reads: settings, the corpus, the grants, the encoder, the run log. Gives: one row per check with a status of ok, warn or
fail, the finding, and a hint unless it is ok. It changes nothing and loads no model: the files of a model folder are
read, and a server gets the request that precedes a question. In an object store it tries to create one object twice,
and removes it. Whether stored bytes are those that were written is for `verify` and `verify corpus`.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cached_property
from importlib.metadata import distributions, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..config.settings import Settings
from ..encoders.encoder import encoder_available, expect_weights, is_bundled, load_encoder
from ..progress import counted
from ..storage.file_access import opened_below, others_may_write

if TYPE_CHECKING:
    from ..corpus import Corpus

__all__ = ["HealthCheck", "examine"]

_NAME = "scoped-retrieval"
_VERSIONS = re.compile(r"[^\w.-]")
"""What follows the name of a package in a requirement: its versions, or extras of its own."""
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)")


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

    @property
    def opened(self) -> Corpus | None:
        """The corpus, None as well if it cannot be opened, which its own check reports."""
        with suppress(StoreError):
            return self.corpus
        return None

    @cached_property
    def audited(self) -> bool:
        """Whether the principal audits the corpus; only then does a check tell anything about the whole of it."""
        from ..reading.grants import audits_corpus

        return self.opened is not None and audits_corpus(self.settings, self.opened.projects())


def examine(settings: Settings) -> dict[str, Any]:
    """Every check and every setting: `{"checks": [...], "settings": [...], "healthy": bool}`."""
    subject = Subject(settings)
    checks = [check for examiner in _EXAMINERS for check in _guarded(examiner, subject)]
    return {
        "healthy": all(c.status != "fail" for c in checks),
        "checks": [asdict(c) for c in checks],
        "settings": settings.rows(),
    }


def _guarded(examiner: Callable[[Subject], Iterator[HealthCheck]], subject: Subject) -> Iterator[HealthCheck]:
    """The checks of one examiner; an error becomes a failed check and does not affect the others."""
    try:
        yield from examiner(subject)
    except ScopedRetrievalError as error:
        yield HealthCheck(examiner.__name__.strip("_").replace("_", " "), "fail", error.message, error.hint)


def _packages(_subject: Subject) -> Iterator[HealthCheck]:
    yield HealthCheck("python", "ok", platform.python_version())
    yield HealthCheck(_NAME, "ok", version(_NAME))
    needed: dict[str, list[str]] = {}
    for requirement in requires(_NAME) or ():
        name, _, marker = requirement.partition(";")
        extra = _EXTRA.search(marker)
        needed.setdefault(extra[1] if extra else "", []).append(_VERSIONS.split(name)[0])
    here = {_VERSIONS.sub("", found.name).lower().replace("_", "-") for found in distributions()}
    for extra, names in sorted(needed.items()):
        named = f"extra {extra}" if extra else "packages"
        if missing := [name for name in names if name.lower() not in here]:
            hint = f'pip install "{_NAME}[{extra}]"' if extra else f"pip install {' '.join(missing)}"
            yield HealthCheck(named, "warn" if extra else "fail", f"not installed: {', '.join(missing)}", hint)
        else:
            yield HealthCheck(named, "ok", "installed")


def _semantic_lane(subject: Subject) -> Iterator[HealthCheck]:
    """The configured encoder, and for auditors of the corpus the rows that have no vector. A server is queried, the files
    of a folder are read; that vectors are of another encoder, a question says.
    """
    from ..encoders.sentence_transformer import SentenceTransformerEncoder

    found, hint, corpus = subject.settings["encoder"], "", subject.opened
    if is_bundled(found):
        expect_weights()
        available, why = encoder_available()
        found, hint = (found, "") if available else ("off", why)
    elif encoder := load_encoder(subject.settings.encoder_choice, corpus.encoder_profile if corpus else None):
        known = encoder.files_profile if isinstance(encoder, SentenceTransformerEncoder) else encoder.profile
        found = f"{found}, {known}"
    if corpus is not None and subject.audited and "semantic" in subject.settings["lanes"]:
        rows, encoded = corpus.encoded(corpus.projects(), {subject.settings.principal})
        if encoded < rows:
            found, hint = f"{rows - encoded} of {rows} rows have no vector", "`index` makes vectors."
    yield HealthCheck("semantic lane", "warn" if hint else "ok", found, hint)


def _cross_encoder(subject: Subject) -> Iterator[HealthCheck]:
    """The files of the configured cross-encoder."""
    from ..encoders.folder_models import files_profile

    if (given := subject.settings["cross_encoder"]) is not None:
        yield HealthCheck("cross encoder", "ok", f"{given}, {files_profile(given)}")


def _stores(subject: Subject) -> Iterator[HealthCheck]:
    """Whether the object stores of corpus and runs answer, and create an object only once, as commits require."""
    from ..storage.places import ObjectPlace

    for name in ("corpus", "runs"):
        place = subject.settings[name]
        if isinstance(place, ObjectPlace):
            list(place.iterdir())
            try:
                place.expect_create()
            except StoreError as error:
                yield HealthCheck(
                    f"{name} store", "warn", error.message, error.hint or "it can be read, and not written to."
                )
                continue
            yield HealthCheck(f"{name} store", "ok", f"{place} answers, and creates an object once")


def _corpus(subject: Subject) -> Iterator[HealthCheck]:
    from ..reading.grants import corpus_facts

    folder = subject.settings["corpus"]
    if not folder.exists():
        yield HealthCheck(
            "corpus", "warn", f"none at {folder}", "`scoped-retrieval index PATH --project P` builds one."
        )
        return
    found = corpus_facts(subject.settings)
    facts = ", ".join(f"{k} {v}" for k, v in found.items() if isinstance(v, (str, int, float)))
    yield HealthCheck("corpus", "ok", facts, "`scoped-retrieval verify corpus` compares every file with its SHA-256.")


def _grants(subject: Subject) -> Iterator[HealthCheck]:
    from ..config.grants import load_grants

    path = subject.settings.grants_path
    if not path.exists():
        yield HealthCheck("grants", "warn", f"none at {path}", "`index --project P` writes a starter file.")
        return
    table = load_grants(path).table
    held = table.filter(pc.equal(table["principal"], subject.settings.principal))
    mine = sorted(set(held["project"].drop_null().to_pylist()))
    found = f"{counted(held.num_rows, 'grant')}; {subject.settings.principal} may read {', '.join(mine) or 'nothing'}"
    yield HealthCheck(
        "grants", "ok" if mine else "warn", found, "" if mine else f"add {subject.settings.principal} to {path}."
    )


def _policies(subject: Subject) -> Iterator[HealthCheck]:
    from ..config.policies.tables import load_policies

    policies = load_policies(subject.settings["policies"], subject.settings["weights"])
    yield HealthCheck(
        "policies", "ok", f"{counted(policies.purpose_policies.num_rows, 'purpose')}, digest {policies.digest[:16]}"
    )


def _runs(subject: Subject) -> Iterator[HealthCheck]:
    from ..reading.access import known_runs
    from ..runs import Runs

    folder = subject.settings["runs"]
    if not folder.exists():
        yield HealthCheck("runs", "warn", f"none at {folder}", "the first `ask` or `run` makes the folder.")
        return
    store = Runs(folder)
    known = known_runs(subject.settings, store)
    mine = {run.run_id for run in store.list() if known(run.run_id)}
    yield HealthCheck(
        "runs",
        "ok",
        f"{counted(len(mine), 'run')} that you may read at {folder}",
        "`scoped-retrieval verify` checks each part.",
    )


def _access(subject: Subject) -> Iterator[HealthCheck]:
    """Files of corpus and runs, and the grants, that others on this machine can read or write."""
    for name in ("corpus", "runs"):
        folder = subject.settings[name]
        if not isinstance(folder, Path) or not folder.is_dir():
            continue
        for verb, found in zip(("read", "write"), opened_below(folder), strict=True):
            if found:
                hint = f"`chmod -R go-rwx {folder}` closes it; leave it open only if they may have every row in it."
                files = f"{counted(len(found), 'file')}, such as {found[0]}" if subject.audited else "files"
                yield HealthCheck(f"{name} access", "warn", f"others can {verb} {files}", hint)
    grants = subject.settings.grants_path
    if isinstance(grants, Path) and (where := others_may_write(grants)):
        hint = "`chmod go-w` it, or keep grants elsewhere (setting `grants`): who can write them can grant themselves every row."
        yield HealthCheck("grants access", "warn", f"others can write {where}", hint)


def _records(subject: Subject) -> Iterator[HealthCheck]:
    """Files of structured records unchanged for `STALE_DAYS`: an alert for the user of the command (S1.33).

    Names only files with rows that the principal may see.
    """
    from ...nodes.fact_verification import STALE_DAYS
    from ..contracts.scope import resolver_of
    from ..requests.narrowing import Fields

    settings = subject.settings
    if not settings["corpus"].exists() or not settings.grants_path.exists():
        return
    resolver = resolver_of(settings)
    oldest = resolver.asked_at - timedelta(days=STALE_DAYS)
    newest = {
        f"{project}: {file}": recorded
        for project in resolver.grants.projects(settings.principal)
        for file, recorded in resolver.scope(Fields({"project": project})).last_recorded("structured-sot").items()
    }
    if stale := sorted(file for file, recorded in newest.items() if recorded < oldest):
        hint = "update the files and index them again; until then, facts that agree with them are marked `stale_sot`."
        yield HealthCheck("records", "warn", f"not modified for {STALE_DAYS} days: {', '.join(stale)}", hint)
    elif newest:
        yield HealthCheck(
            "records", "ok", f"{counted(len(newest), 'file')} of records, each modified within {STALE_DAYS} days"
        )


_EXAMINERS = (
    _packages,
    _semantic_lane,
    _cross_encoder,
    _stores,
    _corpus,
    _grants,
    _policies,
    _records,
    _runs,
    _access,
)
