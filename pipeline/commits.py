"""When a commit was recorded: what `as_of: commit:SHA` means for one request.

A commit is known by its texts alone, so its time may come from nothing else than texts that the request could be shown:
those of its own project that pass every gate of its contract at the moment they were recorded. The gates are the
line's own nodes. A commit that is unknown and one that the request may not see read alike: None.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..nodes.boundary_gates import gated_rows, reachable, row_groups
from ..nodes.frames import OPEN_END, OPEN_START, micros
from ..nodes.keys import flat
from ..nodes.mode_presets import mode_presets
from ..nodes.schema import TIMESTAMP
from ..nodes.scope_resolution import contract_bounds, contracts, scope_groups
from ..nodes.tables import REQUESTS
from ..nodes.time_gates import time_codes
from .corpus import Corpus
from .corpus.memory import MemoryCorpus

_COMMIT = r"^[0-9a-f]{7,64}$"
_NO_VERSIONS = pa.table({"version": pa.array([], pa.string()), "recorded_time": pa.array([], TIMESTAMP)})
_SHAPE = ("principal", "asked_by", "project", "namespace", "workspace_root", "branch", "test_suite", "purpose", "mode",
          "variables", "role", "asked_at", "allow_stale_memory", "max_unverified_items", "allowed_sources", "denied_sources",
          "allowed_paths", "denied_paths", "include_after", "exclude_after", "window_days", "accepted_authority",
          "min_authority")  # fmt: skip
"""What of a request decides which rows it may see, `as_of` apart: requests alike in these share one look-up."""


@dataclass
class Commits:
    """Recorded times by commit, under one table of grants, one of purpose and one of role policies."""

    corpus: Corpus | MemoryCorpus
    grants: pa.Table
    purpose_policies: pa.Table
    mode_policies: pa.Table
    role_policies: pa.Table
    _known: dict[str, pa.Table] = field(default_factory=dict)

    def commit_time(self, sha: str, request: Mapping[str, Any]) -> datetime | None:
        """When the commit was first recorded, as far as the request may see it.

        None if it sees no text of the commit, or if the prefix means several commits.

        Args:
            sha: a commit, or the first digits of one.
            request: columns of REQUESTS, `asked_at` among them; its `as_of` is not read.
        """
        # A work tree hides committed texts that stand under its own as of some instants only: no look-up to share.
        rooted = request.get("workspace_root") is not None
        key = json.dumps([request.get(name) for name in _SHAPE] + [sha if rooted else ""], default=str)
        if key not in self._known:
            self._known[key] = self._versions(request, sha.lower() if rooted else "")
        versions = self._known[key]
        found = versions.filter(pc.starts_with(versions["version"], sha.lower()))
        if len(pc.unique(found["version"])) != 1:
            return None
        return pc.min(found["recorded_time"]).as_py()

    def _versions(self, request: Mapping[str, Any], prefix: str) -> pa.Table:
        """Commits that the request may see with the times of their texts; only those that begin with `prefix`."""
        project = request["project"]
        one = REQUESTS.build({name: [_asked(request, name)] for name in REQUESTS.columns})
        users = pc.unique(
            flat(contract_bounds(one, self.grants, self._contract(one))["users"].combine_chunks().flatten())
        )
        if not len(users):
            return _NO_VERSIONS
        frame = self.corpus.frame([project], users.to_pylist())
        named = flat(frame.placements["version"])
        chosen = pc.and_(pc.match_substring_regex(named, _COMMIT), pc.starts_with(named, prefix))
        placed = np.flatnonzero(np.asarray(pc.fill_null(chosen, False)))
        times, at = np.unique(frame.row_index.recorded[placed], return_inverse=True)
        asked = _at_times(one, times)
        contract = self._contract(asked)
        bounds = contract_bounds(asked, self.grants, contract)
        groups = scope_groups(contract, bounds)
        own = bounds.filter(pc.equal(bounds["project"], project))
        gated = gated_rows(contract, own, groups, frame.evidence, frame.segments, frame.row_index)
        groups = row_groups(groups, gated)
        rows, count = frame.placements["row"].to_numpy()[placed], frame.evidence.num_rows
        reached = reachable(gated)
        passed = reached.filter(pc.equal(reached["withheld_by"], 0))
        cells = passed["scope_group"].to_numpy().astype(np.int64) * count + passed["row"].to_numpy()
        visible = np.isin(groups["scope_group"].to_numpy()[at] * count + rows, cells)
        start, end = micros(contract["window_start"], OPEN_START), micros(contract["window_end"], OPEN_END)
        codes, _ = time_codes(frame.row_index, rows, times[at], start[at], end[at])
        shown = pa.array(placed[visible & (codes == 0)])
        return frame.placements.select(_NO_VERSIONS.column_names).take(shown)

    def _contract(self, requests: pa.Table) -> pa.Table:
        presets = mode_presets(requests, self.mode_policies)
        return contracts(requests, self.grants, self.purpose_policies, presets, self.role_policies)


def _asked(request: Mapping[str, Any], name: str) -> Any:
    """A column of the request that only stands in for it: of its free text the variables of paths, as of now."""
    if name == "variables":
        return request.get(name)
    if REQUESTS.columns[name].free_text:
        return None if REQUESTS.columns[name].nullable else ""
    return {"as_of": request["asked_at"], "request_id": ""}.get(name, request.get(name))


def _at_times(one: pa.Table, times: np.ndarray) -> pa.Table:
    """The same request as of every one of these times, in order."""
    asked = one.take(pa.array(np.zeros(len(times), dtype=np.int64)))
    values = {
        "request_id": pa.array([f"{n:012d}" for n in range(len(times))], pa.string()),
        "as_of": pa.array(times).cast(TIMESTAMP),
    }
    for name, column in values.items():
        index = asked.schema.get_field_index(name)
        asked = asked.set_column(index, asked.schema.field(index), column)
    return asked
