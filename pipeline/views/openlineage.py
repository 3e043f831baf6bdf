"""A run as an OpenLineage event (spec 2-0-2): what it read, what it wrote, and the schema of every table.

Reads: a lineage, rows by table, what a manifest says. Gives: `run_event`, plain values; nobody is sent anything.

Note: no content leaves: names, types, counts, digests and times, no question, no evidence, no path.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

__all__ = ["run_event"]

_SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS = "https://openlineage.io/spec/facets"
_NAMESPACE = "scoped-retrieval"
_RUNS = uuid.UUID("5b0c4f4e-4b8e-5f0a-9a57-6f7f2a6c5d11")


def run_event(
    run_id: str,
    manifest: Mapping[str, Any],
    lineage: Mapping[str, Any],
    rows: Mapping[str, int] | None = None,
    *,
    version: str,
) -> dict[str, Any]:
    """The COMPLETE event of a run, the same for the same run.

    Args:
        manifest: its `created_at`, `settings` and `provenance` are read.
        rows: rows by name of table, for auditors of the whole run.
        version: of the package.
    """
    producer = f"pkg:pypi/scoped-retrieval@{version}"

    def facet(name: str, of: str, **fields: Any) -> dict[str, Any]:
        return {"_producer": producer, "_schemaURL": f"{_FACETS}/{of}/{name}.json#/$defs/{name}", **fields}

    tables = {n["table"]: n for n in lineage["nodes"] if n["kind"] == "node" and n["table"] and n["table"] == n["name"]}
    outputs = []
    for name, node in sorted(tables.items()):
        fields = [{"name": column["name"], "type": column["type"]} for column in node["columns"]]
        one = {
            "namespace": _NAMESPACE, "name": f"runs/{run_id}/{name}",
            "facets": {"schema": facet("SchemaDatasetFacet", "1-1-1", fields=fields),
                       "documentation": facet("DocumentationDatasetFacet", "1-0-1", description=node["doc"])},
        }  # fmt: skip
        if rows is not None and name in rows:
            one["outputFacets"] = {
                "outputStatistics": facet("OutputStatisticsOutputDatasetFacet", "1-0-2", rowCount=rows[name])
            }
        outputs.append(one)
    generation = str(manifest.get("settings", {}).get("generation", ""))
    return {
        "eventType": "COMPLETE",
        "eventTime": manifest["created_at"],
        "producer": producer,
        "schemaURL": _SPEC,
        "run": {"runId": str(uuid.uuid5(_RUNS, run_id))},
        "job": {
            "namespace": _NAMESPACE, "name": "line",
            "facets": {"jobType": facet("JobTypeJobFacet", "2-0-3", processingType="BATCH", integration="SCOPED_RETRIEVAL", jobType="RETRIEVAL")},
        },
        "inputs": [
            {"namespace": _NAMESPACE, "name": "corpus",
             "facets": {"version": facet("DatasetVersionDatasetFacet", "1-0-1", datasetVersion=generation)}},
        ],
        "outputs": outputs,
    }  # fmt: skip
