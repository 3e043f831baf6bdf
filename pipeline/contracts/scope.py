"""The scope of a contract: a request resolved and gated without a retrieval; and delegation, a contract inside another.

Reads: request fields, grants, policies, a corpus, the time of asking. Gives: `ContractScope`, the contract with its
bounds and filter ladder, and the admissible rows, each with the placement that it is judged by. The gates are
the line's own nodes. Everything here follows from request, contract and admissible rows, so its caller may see it.

The parent of a sub-agent's contract is written out in full: every cap set by its purpose or the request, and its places,
including `null`. The child's fields then narrow it. Before the preset is returned, both contracts are resolved against
the corpus, and every row of the child must be a row of its parent.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.kept import rows_by
from ...nodes.columns.keys import flat, gathered
from ...nodes.errors import InputError, VerificationError
from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.tables import CONTRACTS, REQUESTS
from ...nodes.walls.gate import Gate
from ...nodes.walls.gates import GATES
from ...nodes.walls.time_gates import clocks, rows_of_groups
from ..config.grants import GrantsFile, load_grants
from ..config.opening import corpus_of
from ..config.policies.tables import Policies, load_policies
from ..config.settings import Settings
from ..corpus import Corpus
from ..line.driver import build_driver
from ..line.tokenizers import registered
from ..plugins import installed
from ..progress import counted
from ..reading.access import opened
from ..requests.allowed_names import AllowedNames
from ..requests.fields import FIELDS
from ..requests.narrowing import BOUNDS, PLACES, Fields, narrowed
from ..requests.presets import plain_fields
from ..requests.resolve import RequestResolver

_RESOLVED = ("contracts", "contract_bounds")
_GATED = ("reachable", "admissible", "filter_ladder")


@dataclass(frozen=True)
class ContractScope:
    """One request's contract and the rows it could see."""

    fields: Fields
    tables: Mapping[str, pa.Table]
    frame: Any
    rows: NDArray[np.int64]
    """Frame rows of A(r), ascending."""
    placement: NDArray[np.int64]
    """The frame placement by which each of them is judged."""
    gates: tuple[Gate, ...] = GATES
    """The gates in order, including those of plugins."""

    @cached_property
    def contract(self) -> dict[str, Any]:
        """The single row of CONTRACTS."""
        return self.tables["contracts"].to_pylist()[0]

    @cached_property
    def bounds(self) -> list[dict[str, Any]]:
        """The rows of CONTRACT_BOUNDS: the grants it reaches through."""
        return self.tables["contract_bounds"].to_pylist()

    def column(self, name: str) -> pa.Array:
        """A column of EVIDENCE of the admissible rows."""
        return gathered(self.frame.evidence[name], self.rows)

    def last_recorded(self, origin_class: str) -> dict[str, datetime]:
        """The latest recorded time of the admissible rows of a class, by path."""
        of_class = np.asarray(pc.equal(self.column("origin_class"), origin_class))
        at = pa.table(
            {
                "path": pc.fill_null(self.column("path").filter(pa.array(of_class)), ""),
                "recorded": gathered(self.frame.placements["recorded_time"], self.placement[of_class]),
            }
        )
        newest = at.group_by("path", use_threads=False).aggregate([("recorded", "max")])
        return dict(zip(newest["path"].to_pylist(), newest["recorded_max"].to_pylist(), strict=True))

    @property
    def ids(self) -> pa.Array:
        """Evidence ids of the admissible rows."""
        return self.column("evidence_id")


@dataclass(frozen=True)
class ContractResolver:
    """The inputs for resolving contracts, for one credential at one time."""

    corpus: Corpus
    grants: GrantsFile
    policies: Policies
    principal: str
    asked_at: datetime
    defaults: Mapping[str, Any]
    work_trees: Collection[Path] = ()
    tokenizers: Collection[str] = ()
    plugins: Plugins = NO_PLUGINS

    def scope(self, fields: Fields) -> ContractScope:
        """The scope of a request with these fields.

        Raises:
            InputError: a field is invalid.
        """
        given = {name: value for name, value in plain_fields(fields).items() if value is not None}
        row = {**given, "request_id": "contract", "question": given.get("question") or "contract"}
        policies, terms = self.policies, self.plugins.term_names
        known = AllowedNames(rows_by(policies.mode_policies, "mode"), policies.roles.names, self.tokenizers, terms)
        resolver = RequestResolver(self.principal, self.corpus, self.grants, None, known, self.work_trees)
        requests = resolver.table([resolver.one(row, resolver.common(self.defaults), self.asked_at)[0]])
        inputs = {**self.policies.inputs(), "requests": requests, "grants": self.grants.table, "plugins": self.plugins}
        planned = build_driver().execute(list(_RESOLVED), inputs=inputs)
        bounds = planned["contract_bounds"]
        users = pc.unique(pc.list_flatten(flat(bounds["users"]))).to_pylist()
        frame = self.corpus.frame(pc.unique(bounds["project"]).to_pylist(), users)
        gated = build_driver().execute(list(_GATED), inputs=inputs | frame.inputs(), overrides=planned)
        shown = [group.rows[~group.withheld] for group in rows_of_groups(gated["reachable"])]
        rows, placement = _alive(frame, np.concatenate([np.empty(0, np.int64), *shown]), planned["contracts"])
        return ContractScope(
            fields, {**planned, **gated, "requests": requests}, frame, rows, placement, self.plugins.order.gates
        )


def resolver_of(settings: Settings, work_trees: Collection[Path] = ()) -> ContractResolver:
    """The resolver for the principal of the settings, now; `work_trees` as in `asking.opening.open_retriever`.

    Raises:
        StoreError: there is no corpus.
        PolicyError: grants or policies are invalid.
    """
    grants = load_grants(settings.grants_path)
    projects = [settings["project"]] if settings["project"] else grants.projects(settings.principal)
    return ContractResolver(
        corpus=corpus_of(settings),
        grants=grants,
        policies=load_policies(settings["policies"], settings["weights"]),
        principal=settings.principal,
        asked_at=datetime.now(UTC),
        defaults={"purpose": settings["purpose"]} | ({"project": projects[0]} if len(projects) == 1 else {}),
        work_trees=work_trees,
        tokenizers=registered(settings["tokenizers"]),
        plugins=installed(settings["plugins"]).line,
    )


def _alive(frame: Any, rows: NDArray[np.int64], contracts: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows that pass the time gates of the contract, and the placement by which each is judged."""
    clock = clocks(contracts)
    passes, placement = clock.judge(frame.row_index, np.zeros(len(rows), np.int64), rows)
    return rows[passes], placement[passes]


_ENVELOPE = ("request_id", "intent_id", "model_request_id", "trace_id", "turn_id", "task_id")


def fields_of_snapshot(settings: Settings, snapshot_id: str) -> Fields:
    """The request fields of a snapshot, including `as_of`, without free text.

    Raises:
        AccessError: the principal may not read the snapshot.
        InputError: the request was invalid, so no fields were recorded.
    """
    rows = opened(settings, snapshot_id).run.table(REQUESTS.name, snapshot_id=snapshot_id).to_pylist()
    if not rows:
        raise InputError(f"Expected a snapshot of a valid request, got one of an invalid request - at {snapshot_id}")
    asked: dict[str, Any] = rows[0]
    columns = {name: column for name, column in REQUESTS.columns.items() if name in FIELDS and name not in _ENVELOPE}
    kept = {name: asked[name] for name, column in columns.items() if asked[name] is not None and not column.free_text}
    return Fields(kept | ({"weights": json.loads(asked["weights"])} if asked["weights"] else {}))


_APART = ("request_id", "contract_id")
IDS_SHOWN = 20
"""Number of evidence ids of each side that an auditor is shown."""


def difference(one: ContractScope, other: ContractScope, *, ids: bool = False) -> dict[str, Any]:
    """Differing fields, and counts of rows in one, the other and both; with `ids`, the first ids of each side."""
    names = [name for name in CONTRACTS.names(audience="caller") if name not in _APART]
    fields = [
        {"field": name, "a": one.contract.get(name), "b": other.contract.get(name)}
        for name in names
        if one.contract.get(name) != other.contract.get(name)
    ]
    only_a, only_b = _without(one.ids, other.ids), _without(other.ids, one.ids)
    found: dict[str, Any] = {
        "a": one.contract["contract_id"],
        "b": other.contract["contract_id"],
        "fields": fields,
        "rows": {"only_a": len(only_a), "only_b": len(only_b), "both": len(one.rows) - len(only_a)},
    }
    if ids:
        found["ids"] = {
            side: np.sort(np.asarray(some, dtype=object))[:IDS_SHOWN].tolist()
            for side, some in (("only_a", only_a), ("only_b", only_b))
        }
    return found


def _without(ids: pa.Array, others: pa.Array) -> pa.Array:
    return ids.filter(pc.invert(pc.is_in(ids, value_set=others)))


_SETTLED = ("workspace_root", "mode", "variables")
"""Places that a child must not add if its parent has none: it would see rows that its parent does not."""
_ALLOWANCES = ("allowed_sources", "allowed_paths", "accepted_authority")
"""Lists that allow nothing if they are empty."""
_AS_GIVEN = ("as_of", "role", "required_evidence")
"""Fields of which a contract has more than its request: the present time, what a role requires."""


def delegated(resolver: ContractResolver, parent: Fields, child: Fields) -> tuple[Fields, ContractScope, ContractScope]:
    """The fields of the child, and the scopes of parent and child.

    Raises:
        InputError: the child changes a place of its parent.
        VerificationError: the child sees a row that its parent does not.
    """
    above = resolver.scope(parent)
    fields = narrowed(written_out(above), child, "child")
    below = resolver.scope(fields)
    if outside := difference(above, below)["rows"]["only_b"]:
        raise VerificationError(f"Expected rows of the parent alone, got {counted(outside, 'other row')} - at child")
    return fields, above, below


def written_out(scope: ContractScope) -> Fields:
    """The fields of a request with all of its bounds; a request with these fields resolves to the same bounds."""
    contract = scope.contract
    names = [name for name in (*PLACES, *BOUNDS) if name in contract and name not in _AS_GIVEN]
    given = {name: contract[name] for name in names if contract[name] is not None}
    others = {*PLACES, *BOUNDS} - {*names}
    given |= {name: value for name, value in scope.fields.given.items() if name in others}
    variables = scope.tables["requests"]["variables"][0].as_py()
    given |= {"variables": variables} if variables else {}
    given = {name: value for name, value in given.items() if value != [] or name in _ALLOWANCES}
    return Fields(given, scope.fields.without | {name for name in _SETTLED if name not in given})
