"""Angles: the ways in which a tenant asks, each with bounds of its own, and what those bounds shut out.

Reads a row that the tenant was shown, and who else there is. Gives per angle the fields that every probe of it has, and
by reason the columns that shut a row out of all of them: one reason at least for every gate.

What one would otherwise get wrong: a canary is out of scope for a whole state of the test. A gate that a request field
opens or shuts needs an angle in which every probe has that field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.tables import MODE_POLICIES, ROLE_POLICIES
from ...nodes.vocabulary import FEEDBACK_TERMS, TURN_TERMS
from ...nodes.walls.gate_predicates import ACCEPTED_ORIGINS
from ..policies.roles import Roles
from ..policies.tables import Policies

__all__ = [
    "ANGLES", "BOUNDED", "GUIDED", "LEAK_TEST", "LEFT_OUT", "OPEN", "Angle", "Others", "angle", "gate_of", "with_feedback",
    "with_own_presets",
]  # fmt: skip

Row = dict[str, Any]

LEAK_TEST = "leak-test"
SESSION = "leak-test-session"
ROOT = "/leak-test/tree"
MODE = "review"
"""The mode whose preset the test replaces by its own."""
OPEN, BOUNDED, GUIDED = "open", "bounded", "guided"
ANGLES = (OPEN, BOUNDED, GUIDED)
"""Without bounds; with those that a request can name; under a mode and a role, whose links are all followed."""
LEFT_OUT = "left-out zone"
"""The reason of rows in a zone that the mode leaves out."""
NO_PATH = "no path"
"""The reason of rows without a path where the request denies a folder: nobody can say that they are not of it."""
ENDED = ("superseded", "deleted")
_SOURCES = 50
"""Sources of a tenant that a bounded request names."""
_FAR = timedelta(days=36_500)
_FEEDBACK = 0.1
"""Weight of feedback in a purpose that gives it less."""

GATE_OF = {
    "nobody": "principals",
    "revoked": "lifecycle",
    LEFT_OUT: "zone",
    "uncommitted": "workspace",
    "unsearched path": "path_allow",
    NO_PATH: "path_deny",
}
"""The gate behind a reason that does not have its name."""


@dataclass(frozen=True)
class Others:
    """Somebody else and a project elsewhere, both out of the tenant's reach."""

    principal: str
    project: str


@dataclass(frozen=True)
class Angle:
    """How a tenant asks: fields of every probe, and by reason the columns that shut a row out.

    `{token}` in a path stands for the word of the canary.
    """

    name: str
    asked: Mapping[str, Any]
    shut: Mapping[str, Row]
    root: str | None = None
    """The work tree that the probes name."""

    def with_history(self) -> Angle:
        """The same for requests that show superseded and deleted text as history: it is not out of their scope."""
        return replace(self, shut={name: row for name, row in self.shut.items() if name not in ENDED})


def angle(
    name: str,
    seen: Row,
    folder: str,
    who: tuple[str, str, str],
    others: Others,
    sources: Sequence[str],
    as_of: datetime,
) -> Angle:
    """One of ANGLES for a tenant.

    Args:
        seen: a row that the tenant was shown, IMPORT_ROWS by name.
        folder: where hooks and canaries stand, empty or with `/` at its end.
        who: principal, project and highest zone of the tenant.
        others: whom the canaries of the gates `owner`, `principals` and `project` belong to.
        sources: the sources of the tenant's rows.
        as_of: the instant of the probes.
    """
    session = {"session_id": seen.get("session_id") or SESSION, "weights": dict.fromkeys(TURN_TERMS, 0.2)}
    everywhere = _everywhere(who, others, as_of)
    if name == OPEN:
        return Angle(name, session, everywhere | {"uncommitted": {"workspace_root": f"{ROOT}-elsewhere"}})
    if name == BOUNDED:
        asked, shut = _bounded(seen, folder, sources, as_of)
        return Angle(name, session | asked, everywhere | shut, ROOT)
    shut = {
        "unsearched path": {"path": f"{folder}leak-test-unsearched/{{token}}"},
        "level": {"level": "task"},
        "role_source": {"source_id": "leak-test:forbidden"},
        "role": {"excluded_roles": [LEAK_TEST]},
    }
    if who[2] != "public":
        shut[LEFT_OUT] = {"zone": "public"}
    return Angle(name, session | {"mode": MODE, "role": LEAK_TEST, "recall_effort": "graph"}, everywhere | shut)


def gate_of(reason: str) -> str:
    """The gate that shuts a row out for a reason."""
    return GATE_OF.get(reason, reason)


def _everywhere(who: tuple[str, str, str], others: Others, as_of: datetime) -> dict[str, Row]:
    """What shuts a row out of every request of a tenant, whatever it asks."""
    principal, project, zone = who
    day = timedelta(days=1)
    shut: dict[str, Row] = {
        "project": {"owner_project": others.project, "owner_user": principal},
        "owner": {"owner_project": project, "owner_user": others.principal},
        "principals": {"principals": [others.principal]},
        "nobody": {"principals": []},
        "zone": {"zone": "restricted"},
        "visibility": {"declared_visibility": "runtime-only"},
        "revoked": {"lifecycle": "revoked"},
        "safety": {"declared_safety": "blocked"},
        "recorded": {"recorded_time": as_of + day},
        "superseded": {"superseded_at": as_of - day},
        "deleted": {"deleted_at": as_of - day},
        "valid_from": {"valid_from": as_of + day},
        "valid_until": {"valid_until": as_of - day},
    }
    return {name: row for name, row in shut.items() if name != "zone" or zone != "restricted"}


def _bounded(seen: Row, folder: str, sources: Sequence[str], as_of: datetime) -> tuple[Row, dict[str, Row]]:
    """Request fields that leave the tenant's rows in as far as they can, and what they shut out."""
    named = {name: seen.get(name) or f"leak-test-{name}" for name in ("namespace", "branch", "test_suite")}
    start, end = as_of - _FAR, as_of - timedelta(hours=3)
    allowed = sorted({seen["source_id"], *sorted(sources)[:_SOURCES]})
    asked: Row = named | {
        "workspace_root": ROOT,
        "allowed_sources": [*(_literal(source) for source in allowed), "leak-test:denied"],
        "denied_sources": ["leak-test:denied"],
        "denied_paths": [f"path:{_literal(folder)}leak-test-denied/"],
        "min_authority": 1,
        "time": {"include_after": start.isoformat(), "exclude_after": end.isoformat()},
    }
    shut: dict[str, Row] = {name: {name: "leak-test-elsewhere"} for name in named} | {
        "workspace": {"workspace_root": f"{ROOT}-elsewhere"},
        "source_allow": {"source_id": "leak-test:unlisted"},
        "source_deny": {"source_id": "leak-test:denied"},
        "path_deny": {"path": f"{folder}leak-test-denied/{{token}}.md"},
        "min_authority": {"authority": 0},
        "window_start": {"event_time": start - timedelta(days=1)},
        "window_end": {"event_time": end + timedelta(hours=1)},
    }
    if seen["path"]:
        asked["denied_paths"].append(f"{_literal(folder)}leak-test-guarded/")
        shut[NO_PATH] = {"path": None}
    accepted = [name for name, origins in ACCEPTED_ORIGINS.items() if seen["origin_class"] in origins]
    if accepted:
        asked["accepted_authority"] = [*ACCEPTED_ORIGINS]
        shut["accepted_authority"] = {"origin_class": "external"}
    return asked, shut


def _literal(text: str) -> str:
    """A glob that matches the text alone."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def with_own_presets(policies: Policies) -> Policies:
    """The policies with a mode and a role of the test's own, which shut out what no rows of anybody's say.

    The mode follows every link there is, so that each can lead to a canary. Every purpose weighs feedback, whose terms and
    vectors are those of rows.
    """
    policies = with_feedback(policies)
    mode = {
        "mode": MODE, "version": LEAK_TEST, "search_paths": ["**/*.*"], "exclude_kinds": ["level", "zone"],
        "exclude_values": ["task", "public"], "exclude_unless": ["", ""], "lane_k": 30, "max_items": 10,
        "chunk_expansion": True, "exact_lookups": True, "citation_chaining": True, "include_deleted": False,
        "cross_encoder": False,
        "newest_first": False,
    } | {name: [] for name in ("include_paths", "include_when", "lanes", "window_paths")}  # fmt: skip
    lists = [name for name, column in ROLE_POLICIES.columns.items() if pa.types.is_list(column.type)]
    role = {name: [] for name in lists} | {
        "role": LEAK_TEST, "version": LEAK_TEST, "label": LEAK_TEST, "mission": "", "allowed_sources": None,
        "forbidden_sources": ["leak-test:forbidden"], "require_source_diversity": False, "stale_penalty": 0.0,
        "role_mismatch_penalty": 0.0, "citation_style": "inline",
    } | {f"weight_{name}": 0.25 for name in ("lexical", "semantic", "metadata", "rerank")}  # fmt: skip
    digest = hashlib.sha256(f"{LEAK_TEST}:{policies.digest}".encode()).hexdigest()
    return replace(
        policies,
        mode_policies=_with(policies.mode_policies, MODE_POLICIES.from_rows([mode]), "mode"),
        roles=Roles(
            _with(policies.roles.policies, ROLE_POLICIES.from_rows([role]), "role"), policies.roles.rules, digest
        ),
        digest=digest,
    )


def with_feedback(policies: Policies) -> Policies:
    """The policies with feedback in every purpose, at least a little of it."""
    table = policies.purpose_policies
    for name in (f"weight_{term}" for term in FEEDBACK_TERMS):
        at = table.schema.get_field_index(name)
        least = pc.max_element_wise(table[name], pa.scalar(_FEEDBACK))
        table = table.set_column(at, table.schema.field(at), least)
    return replace(policies, purpose_policies=table)


def _with(table: pa.Table, row: pa.Table, key: str) -> pa.Table:
    others = table.filter(pc.not_equal(table[key], row[key][0]))
    return pa.concat_tables([others, row]).sort_by(key).combine_chunks()
