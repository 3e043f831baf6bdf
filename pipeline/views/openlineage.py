"""A run as OpenLineage events (spec 2-0-2): its inputs, its outputs, the schema of every table, and its outcome.

Reads: a lineage, rows by table, a manifest. Gives: `start_event`, `complete_event` and `fail_event`, plain values that
share the id of their run; nothing is sent.

Note: no content leaves: names, types, counts, digests and times, no question, no evidence, no path.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

__all__ = ["complete_event", "fail_event", "start_event"]

_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"
_NAMESPACE = "scoped-retrieval"
_RUNS = uuid.UUID("5b0c4f4e-4b8e-5f0a-9a57-6f7f2a6c5d11")
_ENGINE = "scoped-retrieval"


def start_event(run_id: str, settings: Mapping[str, Any], at: str) -> dict[str, Any]:
    """The START event of a run.

    Args:
        settings: those of the run; `generation` is read.
        at: when it began or was resumed, ISO 8601 with an offset.
    """
    return _event("START", run_id, settings, at)


def complete_event(
    run_id: str,
    manifest: Mapping[str, Any],
    lineage: Mapping[str, Any],
    rows: Mapping[str, int] | None = None,
    *,
    at: str | None = None,
) -> dict[str, Any]:
    """The COMPLETE event of a run.

    Args:
        manifest: its `created_at` and `settings` are read.
        rows: rows by name of table, for auditors of the whole run.
        at: when it ended; by default its `created_at`, so the event of a stored run is always the same.
    """
    tables = {n["table"]: n for n in lineage["nodes"] if n["kind"] == "node" and n["table"] and n["table"] == n["name"]}
    outputs = []
    for name, node in sorted(tables.items()):
        fields = [{"name": column["name"], "type": column["type"]} for column in node["columns"]]
        one = {
            "namespace": _NAMESPACE, "name": f"runs/{run_id}/{name}",
            "facets": {"schema": _facet("SchemaDatasetFacet", "1-2-0", fields=fields),
                       "documentation": _facet("DocumentationDatasetFacet", "1-1-0", description=node["doc"])},
        }  # fmt: skip
        if rows is not None and name in rows:
            one["outputFacets"] = {
                "outputStatistics": _facet("OutputStatisticsOutputDatasetFacet", "1-0-2", rowCount=rows[name])
            }
        outputs.append(one)
    event = _event("COMPLETE", run_id, manifest.get("settings", {}), at or manifest["created_at"])
    return event | {"outputs": outputs}


def fail_event(run_id: str, settings: Mapping[str, Any], message: str, at: str) -> dict[str, Any]:
    """The FAIL event of a run that was interrupted or failed; resuming it starts it again.

    Args:
        message: the public part of the error: ids, names, types and counts.
    """
    event = _event("FAIL", run_id, settings, at)
    event["run"]["facets"]["errorMessage"] = _facet(
        "ErrorMessageRunFacet", "1-0-1", message=message, programmingLanguage="python"
    )
    return event


def _event(kind: str, run_id: str, settings: Mapping[str, Any], at: str) -> dict[str, Any]:
    installed = version("scoped-retrieval")
    engine = _facet("ProcessingEngineRunFacet", "1-1-1", version=installed, name=_ENGINE)
    job_type = _facet(
        "JobTypeJobFacet", "2-0-4", processingType="BATCH", integration="SCOPED_RETRIEVAL", jobType="RETRIEVAL"
    )
    generation = _facet("DatasetVersionDatasetFacet", "1-0-1", datasetVersion=str(settings.get("generation", "")))
    return {
        "eventType": kind,
        "eventTime": at,
        "producer": _producer(),
        "schemaURL": _SPEC,
        "run": {"runId": str(uuid.uuid5(_RUNS, run_id)), "facets": {"processing_engine": engine}},
        "job": {"namespace": _NAMESPACE, "name": "line", "facets": {"jobType": job_type}},
        "inputs": [{"namespace": _NAMESPACE, "name": "corpus", "facets": {"version": generation}}],
        "outputs": [],
    }


def _facet(name: str, of: str, /, **fields: Any) -> dict[str, Any]:
    return {"_producer": _producer(), "_schemaURL": f"{_FACETS}/{of}/{name}.json#/$defs/{name}", **fields}


def _producer() -> str:
    return f"pkg:pypi/scoped-retrieval@{version('scoped-retrieval')}"
