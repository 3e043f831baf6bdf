"""What the current grants let a principal see: `Viewer` of snapshots, `audits` of projects, `corpus_facts` of a corpus.

Reads: settings, the current grants file, the grants stored with a run. Gives: `grants_in_force` of a principal.
Users who asked see their part; an auditor of every project that a request reached sees all of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.tables import GRANTS
from ..config.settings import Settings
from ..storage.durable import exists


def grants_in_force(grants: pa.Table, principal: str, now: datetime | None = None) -> pa.Table:
    """The grants of a principal that have not expired."""
    in_force = pc.fill_null(pc.greater(grants["expires"], pa.scalar(now or datetime.now(UTC))), True)
    return grants.filter(pc.and_(pc.equal(grants["principal"], principal), in_force))


def grants_or_none(settings: Settings) -> pa.Table | None:
    """The current grants; None if there is no grants file. An unreadable file is an error: withdrawn rights stay
    withdrawn.
    """
    from ..config.grants import load_grants

    path = settings.grants_path
    return load_grants(path).table if exists(path) else None


def grants_of_readers(settings: Settings) -> list[dict[str, Any]]:
    """The grants in force of the principal, and those of others in the projects that the principal audits, by rule."""
    from ..config.grants import load_grants

    table = load_grants(settings.grants_path).table
    mine = audited(settings, table)
    people = table["principal"].unique().to_pylist()
    rows = [row for name in people for row in grants_in_force(table, name).to_pylist()]
    shown = [row for row in rows if row["principal"] == settings.principal or row["project"] in mine]
    return sorted(shown, key=lambda row: row["rule_id"])


def audited(settings: Settings, grants: pa.Table | None) -> set[str | None]:
    """The projects that the principal audits under these grants, None without a grants file."""
    mine = _grants_of(settings, grants)
    return set(mine.filter(mine["audit"])["project"].to_pylist())


def audits(settings: Settings, projects: Collection[str]) -> bool:
    """Whether the principal audits all of these projects in the current grants file."""
    return set(projects) <= audited(settings, grants_or_none(settings))


def audits_corpus(settings: Settings, projects: Collection[str]) -> bool:
    """Whether the principal audits a corpus: every project in it and in the grants.

    Everything about the whole corpus (head, generations, counts, sizes, files, other projects) is for them alone: it
    changes with rows that other users may not know of.
    """
    grants = grants_or_none(settings)
    return audits_everything(settings, grants) and set(projects) <= audited(settings, grants)


def audits_everything(settings: Settings, grants: pa.Table | None) -> bool:
    """Whether the principal audits every project in the grants."""
    projects = set() if grants is None else set(grants["project"].drop_null().to_pylist())
    return bool(projects) and projects <= audited(settings, grants)


def corpus_facts(settings: Settings) -> dict[str, Any]:
    """The facts about the corpus that the principal may know: all if it audits the corpus, else the projects that it
    may ask in, whether or not they have rows.
    """
    from ..config.opening import corpus_of

    found = corpus_of(settings).info()
    if audits_corpus(settings, found["projects"]):
        return found
    mine = _grants_of(settings, grants_or_none(settings))
    granted = mine.filter(mine["own_project"])["project"].drop_null().unique().to_pylist()
    return {"path": found["path"], "projects": sorted(granted)}


def _grants_of(settings: Settings, grants: pa.Table | None) -> pa.Table:
    return grants_in_force(GRANTS.empty() if grants is None else grants, settings.principal)


class Viewer:
    """A reader of snapshots and their current grants."""

    def __init__(self, principal: str, grants: pa.Table) -> None:
        self.principal = principal
        self._grants = grants
        self._opened: dict[str, frozenset[str]] = {}
        mine = grants_in_force(grants, principal)
        self.audited = frozenset(mine.filter(mine["audit"])["project"].to_pylist())
        lending = mine.filter(mine["act_as"].is_valid()).select(["act_as", "project"]).to_pylist()
        self._lent = {(other, row["project"]) for row in lending for other in row["act_as"]}

    def audience(self, asked: Mapping[str, Any], reached: Collection[str]) -> Literal["audit", "caller"] | None:
        """An auditor of the request's project and of every reached project sees all; its user and principal see their
        part.

        They see it only while the current grants still give the principal every project that the answer reached, and
        still let the user who asked act for the principal.
        """
        project, subject = asked.get("project"), asked.get("principal")
        if project in self.audited and self.audited.issuperset(reached):
            return "audit"
        if self.principal not in (subject, asked.get("asked_by")):
            return None
        lent = self.principal == subject or not self._lent.isdisjoint({(subject, None), (subject, project)})
        return "caller" if not reached or (lent and self._opens(str(subject)).issuperset(reached)) else None

    def _opens(self, principal: str) -> frozenset[str]:
        if principal not in self._opened:
            held = grants_in_force(self._grants, principal)
            self._opened[principal] = frozenset(held.filter(held["act_as"].is_null())["project"].to_pylist())
        return self._opened[principal]
