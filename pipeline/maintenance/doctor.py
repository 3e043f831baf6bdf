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
from datetime import timedelta
from importlib.metadata import distributions, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from ...nodes.errors import ScopedRetrievalError, StoreError
from ..config.settings import Settings
from ..encoders.encoder import encoder_available, load_encoder
from ..progress import counted
from ..storage.file_access import opened_to_others, others_may_write

if TYPE_CHECKING:
    from ..corpus import Corpus

_NAME = "scoped-retrieval"
_OWN = re.compile(rf"{_NAME}\[([\w,-]+)\]")
"""A requirement of other extras of this package."""
_VERSIONS = re.compile(r"[^\w.-]")
"""What follows the name of a package in a requirement: its versions, or extras of its own."""
_EXTRA = re.compile(r"extra == ['\"]([\w-]+)")

_Findings = Iterator[tuple[str, str, str]]
"""Name, finding, and what to do about it, empty if it is well."""


def examine(settings: Settings) -> dict[str, Any]:
    """Every check and every setting: `{"checks": [...], "settings": [...], "healthy": bool}`.

    The status of a check is ok, warn (something is off or absent) or fail (something is unreadable).
    """
    checks = [check for examiner in _EXAMINERS for check in _checked(examiner, settings)]
    return {
        "healthy": all(check["status"] != "fail" for check in checks),
        "checks": checks,
        "settings": settings.rows(),
    }


def _checked(examiner: Callable[[Settings], _Findings], settings: Settings) -> Iterator[dict[str, str]]:
    """The checks of one examiner; an error becomes a failed check and does not affect the others."""
    try:
        for name, found, hint in examiner(settings):
            yield {"name": name, "status": "warn" if hint else "ok", "found": found, "hint": hint}
    except ScopedRetrievalError as error:
        name = examiner.__name__.strip("_").replace("_", " ")
        yield {"name": name, "status": "fail", "found": error.message, "hint": error.hint}


def _audited(settings: Settings) -> Corpus | None:
    """The corpus, if it can be opened and the principal audits it: only then does a check tell anything about the whole of it."""
    from ..config.opening import corpus_of
    from ..reading.grants import audits_corpus

    try:
        corpus = corpus_of(settings) if settings["corpus"].exists() else None
        return corpus if corpus is not None and audits_corpus(settings, corpus.projects()) else None
    except StoreError:  # its own check reports it
        return None


def _packages(_settings: Settings) -> _Findings:
    yield "python", platform.python_version(), ""
    yield _NAME, version(_NAME), ""
    needed: dict[str, list[str]] = {}
    for requirement in requires(_NAME) or ():
        name, _, marker = requirement.partition(";")
        extra = _EXTRA.search(marker)
        needed.setdefault(extra[1] if extra else "", []).append(name)

    def packages(extra: str) -> Iterator[str]:
        for name in needed[extra]:
            if own := _OWN.match(name):
                for each in own[1].split(","):
                    yield from packages(each)
            else:
                yield _VERSIONS.split(name)[0]

    here = {_VERSIONS.sub("", found.name).lower().replace("_", "-") for found in distributions()}
    for extra in sorted(needed):
        missing = [name for name in dict.fromkeys(packages(extra)) if name.lower() not in here]
        found = f"not installed: {', '.join(missing)}" if missing else "installed"
        hint = f'pip install "{_NAME}[{extra}]"' if extra else f"pip install {' '.join(missing)}"
        yield f"extra {extra}" if extra else "packages", found, hint if missing else ""


def _semantic_lane(settings: Settings) -> _Findings:
    """The configured encoder, and for auditors of the corpus the rows that have no vector. A server is queried, any
    other model is loaded; that vectors are of another encoder, a question says.
    """
    corpus = _audited(settings)
    encoder = load_encoder(settings.encoder_choice, corpus.encoder_profile if corpus else None)
    found, hint = (f"{settings['encoder']}, {encoder.profile}", "") if encoder else ("off", encoder_available()[1])
    if corpus is not None and "semantic" in settings["lanes"]:
        rows, encoded = corpus.encoded(corpus.projects(), {settings.principal})
        if encoded < rows:
            found, hint = f"{rows - encoded} of {rows} rows have no vector", "`index` makes vectors."
    yield "semantic lane", found, hint


def _cross_encoder(settings: Settings) -> _Findings:
    """The files of the configured cross-encoder."""
    from ..encoders.folder_models import files_profile

    if (given := settings["cross_encoder"]) is not None:
        yield "cross encoder", f"{given}, {files_profile(given)}", ""


def _stores(settings: Settings) -> _Findings:
    """Whether the object stores of corpus and runs answer, and create an object only once, as commits require."""
    from ..storage.places import ObjectPlace

    for name in ("corpus", "runs"):
        place = settings[name]
        if isinstance(place, ObjectPlace):
            list(place.iterdir())
            try:
                place.expect_create()
                yield f"{name} store", f"{place} answers, and creates an object once", ""
            except StoreError as error:
                yield f"{name} store", error.message, error.hint or "it can be read, and not written to."


def _corpus(settings: Settings) -> _Findings:
    from ..reading.grants import corpus_facts

    folder = settings["corpus"]
    if not folder.exists():
        yield "corpus", f"none at {folder}", "`scoped-retrieval index PATH --project P` builds one."
        return
    facts = ", ".join(f"{k} {v}" for k, v in corpus_facts(settings).items() if isinstance(v, (str, int, float)))
    yield "corpus", facts, ""


def _grants(settings: Settings) -> _Findings:
    from ..config.grants import load_grants

    path = settings.grants_path
    if not path.exists():
        yield "grants", f"none at {path}", "`index --project P` writes a starter file."
        return
    table = load_grants(path).table
    held = table.filter(pc.equal(table["principal"], settings.principal))
    mine = sorted(set(held["project"].drop_null().to_pylist()))
    found = f"{counted(held.num_rows, 'grant')}; {settings.principal} may read {', '.join(mine) or 'nothing'}"
    yield "grants", found, "" if mine else f"add {settings.principal} to {path}."


def _policies(settings: Settings) -> _Findings:
    from ..config.policies.tables import load_policies

    policies = load_policies(settings["policies"], settings["weights"])
    yield "policies", f"{counted(policies.purpose_policies.num_rows, 'purpose')}, digest {policies.digest[:16]}", ""


def _runs(settings: Settings) -> _Findings:
    from ..reading.access import known_runs
    from ..runs import Runs

    folder = settings["runs"]
    if not folder.exists():
        yield "runs", f"none at {folder}", "the first `ask` or `run` makes the folder."
        return
    store = Runs(folder)
    known = known_runs(settings, store)
    mine = {run.run_id for run in store.list() if known(run.run_id)}
    yield "runs", f"{counted(len(mine), 'run')} that you may read at {folder}", ""


def _access(settings: Settings) -> _Findings:
    """Corpus, runs and grants that others on this machine can read or write."""
    for name in ("corpus", "runs"):
        folder = settings[name]
        if not isinstance(folder, Path) or not folder.is_dir():
            continue
        if verbs := opened_to_others(folder):
            hint = f"`chmod go-rwx {folder}` closes it; leave it open only if they may have every row in it."
            yield f"{name} access", f"others can {' and '.join(verbs)} what is in it", hint
    grants = settings.grants_path
    if isinstance(grants, Path) and (where := others_may_write(grants)):
        hint = "`chmod go-w` it, or keep grants elsewhere (setting `grants`): who can write them can grant themselves every row."
        yield "grants access", f"others can write {where}", hint


def _records(settings: Settings) -> _Findings:
    """Files of structured records unchanged for `STALE_DAYS`: an alert for the user of the command (S1.33).

    Names only files with rows that the principal may see.
    """
    from ...nodes.fact_verification import STALE_DAYS
    from ..contracts.scope import resolver_of
    from ..requests.narrowing import Fields

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
        yield "records", f"not modified for {STALE_DAYS} days: {', '.join(stale)}", hint
    elif newest:
        yield "records", f"{counted(len(newest), 'file')} of records, each modified within {STALE_DAYS} days", ""


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
