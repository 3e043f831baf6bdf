"""A tiny world for recall: rows given as dictionaries, requests given as dictionaries, the line's own nodes between.

Postings, admissibility and ids are made here in plain Python, so that a test of the kernels does not lean on the corpus.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

os.environ.setdefault("HAMILTON_AUTOLOAD_EXTENSIONS", "0")

import numpy as np
import pyarrow as pa
import pytest
from hamilton import driver
from scoped_retrieval.nodes import candidate_recall, query_planning
from scoped_retrieval.nodes.frames import PostingIndex, RowIndex, SegmentPostings, VectorIndex, key_hashes, posting_keys
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.lanes import LANE_NAMES
from scoped_retrieval.nodes.recall import pair_scores
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.vector_recall import NOTHING_ENCODED
from scoped_retrieval.nodes.tables import (
    ADMISSIBLE,
    CONTRACTS,
    EVIDENCE,
    PLACEMENTS,
    PLAN_RULES,
    QUERY_TERMS,
    REACHABLE,
    REQUESTS,
    ROLE_POLICIES,
    ROLE_RULES,
    SEGMENTS,
    SESSION_TEXTS,
    SUB_QUERIES,
)
from scoped_retrieval.nodes.text.index_keys import conflict_keys, definition_keys, id_keys, path_keys
from scoped_retrieval.nodes.text.text_analysis import terms_in

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LANES = LANE_NAMES
Row = Mapping[str, Any]
_DIGITS = "0123456789abcdefghijklmnopqrstuv"


def day(number: int) -> datetime:
    """A day of May 2026."""
    return datetime(2026, 5, number, tzinfo=UTC)


def evidence_id(row: Row) -> str:
    """An id that depends on the row's own document only, as the corpus makes them."""
    named = "\n".join(str(row.get(name)) for name in ("project", "source_id", "path", "section", "text", "name"))
    number = int.from_bytes(hashlib.sha256(named.encode()).digest()[:17])
    return "".join(_DIGITS[number >> 5 * place & 31] for place in range(25, -1, -1))


def frame(rows: Sequence[Row], *, chunk: int | None = None) -> dict[str, Any]:
    """The parts of a frame. A row's `project` chooses its segment; `name` is what tests call it."""
    projects = list(dict.fromkeys(row.get("project", "shop") for row in rows))
    rows = sorted(rows, key=lambda row: projects.index(row.get("project", "shop")))
    owners = [row.get("project", "shop") for row in rows]
    full = []
    for row in rows:
        names = {key: value for key, value in row.items() if key in EVIDENCE.columns}
        full.append(
            {
                "evidence_id": evidence_id(row),
                "source_id": "workspace:shop",
                "origin_class": "workspace",
                "evidence_kind": "code",
                "owner_project": row.get("project", "shop"),
                "authority": 1,
                "generated": False,
                "text": "",
                "text_sha256": hashlib.sha256(str(row.get("text", "")).encode()).hexdigest(),
            }
            | names
        )
    terms = [terms_in(row["text"], "code/2") for row in full]
    for row, own in zip(full, terms, strict=True):
        row["length"] = len(own)
    evidence = EVIDENCE.from_rows(full)
    placements = PLACEMENTS.from_rows(
        [
            {
                "row": at,
                "evidence_id": full[at]["evidence_id"],
                "version": row.get("version") or f"v{at}.{number}",
                **placement,
            }
            for at, row in enumerate(rows)
            for number, placement in enumerate(row.get("placements", [_placement(row)]))
        ]
    )
    starts = [owners.index(project) for project in projects]
    ends = [*starts[1:], len(rows)]
    parts = []
    for low, high in zip(starts, ends, strict=True):
        parts.append(_postings(full[low:high], terms[low:high]))
    segments = SEGMENTS.from_rows(
        [
            {"segment_id": f"s-{project}", "owner_project": project, "row_start": low, "row_end": high}
            for project, low, high in zip(projects, starts, ends, strict=True)
        ]
    )
    if chunk:
        evidence, placements = (rechunked(table, chunk) for table in (evidence, placements))
    return {
        "evidence": evidence,
        "placements": placements,
        "segments": segments,
        "row_index": RowIndex.of(evidence, placements),
        "postings": PostingIndex(tuple(parts), np.array(starts, dtype=np.int64)),
        "rows": rows,
    }


def _placement(row: Row) -> dict[str, Any]:
    names = ("line_start", "line_end", "recorded_time", "superseded_at", "deleted_at")
    return {"recorded_time": day(1)} | {name: row[name] for name in names if name in row}


def _postings(rows: Sequence[Row], terms: Sequence[Sequence[str]]) -> SegmentPostings:
    found: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for at, (row, own) in enumerate(zip(rows, terms, strict=True)):
        keyed = [("text", own)]
        keyed += [("definition", definition_keys(name)) for name in row.get("symbols") or []]
        keyed += [("reference", definition_keys(name)) for name in row.get("calls") or []]
        keyed += [("path", path_keys(row["path"]))] if row.get("path") else []
        keyed += [("id", id_keys(row[name])) for name in ("evidence_id", "entity") if row.get(name)]
        keyed += [("id", id_keys(name)) for name in row.get("supersedes") or []]
        keyed += [("conflict", conflict_keys(row["conflict_set"]))] if row.get("conflict_set") else []
        for field, keys in keyed:
            for key in posting_keys(field, keys):
                found[key][at] += 1
    keys = list(found)
    hashes = key_hashes(keys) if keys else np.empty(0, np.uint64)
    order = np.argsort(hashes, kind="stable")
    lists = [sorted(found[keys[k]].items()) for k in order]
    starts = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in lists], out=starts[1:])
    flat = [pair for one in lists for pair in one]
    return SegmentPostings(
        hashes[order],
        pa.array([keys[k] for k in order], pa.large_string()),
        starts,
        np.array([row for row, _ in flat], dtype=np.int32),
        np.array([freq for _, freq in flat], dtype=np.int32),
    )


def passes(world: Mapping[str, Any], request: Row, at: int) -> bool:
    """Whether a row is admissible for a request, decided in plain Python from the row's dictionary."""
    row = world["rows"][at]
    if row.get("foreign") or row.get("withheld_by", 0) or row.get("project", "shop") not in request["projects"]:
        return False
    as_of = request["as_of"]
    if (row.get("valid_from") and row["valid_from"] > as_of) or (
        row.get("valid_until") and row["valid_until"] <= as_of
    ):
        return False
    return any(
        one["recorded_time"] <= as_of
        and not (one.get("superseded_at") and one["superseded_at"] <= as_of)
        and not (one.get("deleted_at") and one["deleted_at"] <= as_of)
        for one in row.get("placements", [_placement(row)])
    )


def asked(world: Mapping[str, Any], requests: Sequence[Row], *, chunk: int | None = None) -> dict[str, Any]:
    """The tables before planning, for some requests: a group per distinct set of projects."""
    requests = sorted(
        ({"request_id": "r1", "question": "", "projects": ("shop",), "as_of": NOW} | dict(r) for r in requests),
        key=lambda r: r["request_id"],
    )
    scopes = list(dict.fromkeys(tuple(r["projects"]) for r in requests))
    rows = world["rows"]
    reachable = []
    for group, projects in enumerate(scopes):
        reached = [
            at for at, row in enumerate(rows) if row.get("project", "shop") in projects and not row.get("foreign")
        ]
        withheld = [rows[at].get("withheld_by", 0) for at in reached]
        reachable.append({"scope_group": group, "rows": reached, "withheld_by": withheld, "left": []})
    contracts, full, counted = [], [], []
    for request in requests:
        contracts.append(_contract(request))
        full.append(_request(request))
        group = scopes.index(tuple(request["projects"]))
        own = [at for at in range(len(rows)) if passes(world, request, at)]
        lengths = world["evidence"]["length"].to_pylist()
        counted.append(
            {
                "request_id": request["request_id"],
                "scope_group": group,
                "rows": len(own),
                "encoded": 0,
                "total_length": sum(lengths[at] for at in own),
                "withheld": 0,
                "stopped": [],
                "row_digest": "",
            }
        )
    tables = {
        "contracts": CONTRACTS.from_rows(contracts),
        "requests": REQUESTS.from_rows(full),
        "reachable": REACHABLE.from_rows(reachable),
        "admissible": ADMISSIBLE.from_rows(counted),
    }
    return {name: rechunked(table, chunk) if chunk else table for name, table in tables.items()}


def _contract(request: Row) -> dict[str, Any]:
    defaults = {
        "contract_id": "c", "denied": False, "principal": "ana", "groups": [], "project": "shop", "purpose": "fix-test",
        "denied_sources": [], "denied_paths": [], "asked_at": NOW, "allow_stale_memory": False, "include_states": ["verified"],
        "min_authority": 0, "require_citation": True, "require_snapshot": False, "max_unverified_items": 1,
        "lane_k": 10, "pool_k": 20, "max_items": 5, "max_items_per_source": 5, "max_tokens": 500, "max_chars": 5000,
        "max_chunk_tokens": 100, "tokenizer": "t", "withheld_k": 3, "graph_floor": 0.2, "graph_iterations": 3, "merge_policy": "interleave-by-relevance",
        "output_shape": "context-block", "instruction_sources": [], "required_evidence": [], "recall_effort": "full",
        "excluded_paths": [], "excluded_levels": [], "excluded_zones": [], "mode_lanes": [], "window_paths": [],
        "chunk_expansion": True, "exact_lookups": False, "citation_chaining": False, "include_deleted": False,
        "newest_first": False,
        "forbidden_sources": [], "source_diversity": False, "citation_style": "inline",
    }  # fmt: skip
    return defaults | {name: value for name, value in request.items() if name in CONTRACTS.columns}


def _request(request: Row) -> dict[str, Any]:
    defaults = {
        "intent_source": "runtime", "principal": "ana", "project": "shop", "purpose": "fix-test",
        "recall_effort": "full", "asked_at": NOW, "allow_stale_memory": False, "require_citation": True,
        "require_snapshot": False, "tokenizer": "t",
    }  # fmt: skip
    return defaults | {name: value for name, value in request.items() if name in REQUESTS.columns}


def rules(*rows: Row) -> pa.Table:
    """Plan rules; each row names only what matters."""
    defaults = {
        "purpose": "fix-test", "intent": "find-code", "question": "where?", "parts": ["question"],
        "lanes": ["lexical"], "sources": [], "kinds": [], "min_authority": 0, "requires": [],
    }  # fmt: skip
    return PLAN_RULES.from_rows([{"ordinal": n, **defaults, **row} for n, row in enumerate(rows, start=1)])


@cache
def _driver() -> driver.Driver:
    return driver.Builder().with_modules(query_planning, candidate_recall).build()


def line(
    world: Mapping[str, Any],
    requests: Sequence[Row],
    *nodes: str,
    plan: pa.Table | None = None,
    lanes: tuple[str, ...] = LANES,
    bm25: Bm25 | None = None,
    chunk: int | None = None,
    **inputs: Any,
) -> dict[str, pa.Table]:
    """The named nodes (default: hits and candidates), checked against their declarations."""
    given = {name: world[name] for name in ("evidence", "placements", "segments", "row_index", "postings")}
    given |= asked(world, requests, chunk=chunk)
    given |= {"plan_rules": rules({}) if plan is None else plan, "lanes": lanes, "bm25": bm25 or Bm25()}
    given |= {"role_policies": ROLE_POLICIES.empty(), "role_rules": ROLE_RULES.empty()}
    given |= {"vectors": None, "query_vectors": NOTHING_ENCODED}
    given |= {"session_texts": SESSION_TEXTS.empty()} | inputs
    lanes_of = {name: name.replace("_hits", "_recall") for name in nodes if name in ("lexical_hits", "file_hits")}
    wanted = [lanes_of.get(name, name) for name in nodes or ("hits", "candidates")]
    encoded = {"query_vectors": given.pop("query_vectors")}
    out = _driver().execute([*dict.fromkeys(wanted), "sub_queries"], inputs=given, overrides=encoded)
    out |= {name: out[node].hits for name, node in lanes_of.items()}
    out |= {name: _named(world, out["sub_queries"], table) for name, table in out.items() if name.endswith("_hits")}
    declared = {"sub_queries": SUB_QUERIES, "query_terms": QUERY_TERMS}
    for name, table in out.items():
        if name in declared:
            declared[name].check(table)
    return out


def _named(world: Mapping[str, Any], sub_queries: pa.Table, hits: pa.Table) -> pa.Table:
    """The hits of a lane with their ids."""
    for name in ("request_id", "sub_query_id"):
        hits = hits.append_column(name, sub_queries[name].take(hits["sub_query"]))
    return hits.append_column("evidence_id", world["evidence"]["evidence_id"].take(hits["row"]))


def names(world: Mapping[str, Any], table: pa.Table, **equal: Any) -> list[str]:
    """What tests call the rows of a table, in order; `equal` keeps rows with these values."""
    rows = [r for r in table.to_pylist() if all(r[key] == value for key, value in equal.items())]
    return [world["rows"][r["row"]].get("name") for r in rows]


def vectors(world: Mapping[str, Any], rows: np.ndarray, queries: np.ndarray) -> VectorIndex:
    """A vector index of float rows and queries, made unit and rounded as the encoder does."""
    starts = world["segments"]["row_start"].to_numpy()
    ends = world["segments"]["row_end"].to_numpy()
    whole = _rounded(rows)
    return VectorIndex(
        "test/1", tuple(whole[a:b] for a, b in zip(starts, ends, strict=True)), starts, _rounded(queries)
    )


def products_in_parts_of(cells: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of pairs by NumPy, with `CELLS` = cells; None = by the compiled loop, skipped where it is not installed."""
    loops = None if cells else compiled.kernels(compiled.PAYS_FROM)
    if not cells and loops is None:
        pytest.skip("needs the extra fast")
    monkeypatch.setattr(pair_scores, "kernels", lambda visits: loops)
    monkeypatch.setattr(pair_scores, "CELLS", cells or 1)


def _rounded(values: np.ndarray) -> np.ndarray:
    unit = values / np.linalg.norm(values, axis=1, keepdims=True)
    return np.clip(np.rint(unit * 2**15), -32767, 32767).astype(np.int16)


def rechunked(table: pa.Table, size: int) -> pa.Table:
    """The same rows in chunks of `size`."""
    parts = [table.slice(low, size) for low in range(0, max(table.num_rows, 1), size)]
    return pa.concat_tables(parts)
