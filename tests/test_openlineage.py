"""Events of OpenLineage: START, then COMPLETE or FAIL under one id, each one that the official classes can say; no content."""

from __future__ import annotations

import json
import re
import uuid
from datetime import datetime
from typing import Any

import pytest
from audited_runs import ASKED, SAYS, audited
from scoped_retrieval.pipeline.engines import shards

pytest.importorskip("openlineage.client", reason="needs openlineage-python, of the extra `dev`")

from openlineage.client import event_v2 as official
from openlineage.client import facet_v2
from openlineage.client.generated.base import BaseFacet
from openlineage.client.serde import Serde

REQUESTS = [ASKED | {"request_id": f"ol-{n}", "purpose": "answer-question"} for n in range(3)]


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("openlineage"))


def facet_of(said: dict[str, Any]) -> BaseFacet:
    """A facet of ours as an object of the official class that its schema names."""
    name = said["_schemaURL"].rpartition("/")[2]
    (cls,) = {
        getattr(module, name)
        for module in vars(facet_v2).values()
        if hasattr(module, "__file__") and hasattr(module, name)
    }
    fields = {key: value for key, value in said.items() if not key.startswith("_")}
    if "fields" in fields:
        fields["fields"] = [facet_v2.schema_dataset.SchemaDatasetFacetFields(**one) for one in fields["fields"]]
    return cls(**fields, producer=said["_producer"])


def dataset_of(cls: type, said: dict[str, Any]) -> Any:
    facets = {
        kind: {name: facet_of(one) for name, one in said[kind].items()}
        for kind in ("facets", "outputFacets")
        if kind in said
    }
    return cls(namespace=said["namespace"], name=said["name"], **facets)


def by_official_classes(event: dict[str, Any]) -> dict[str, Any]:
    """An event made by the official classes, which check it, of what ours says."""
    run, job = event["run"], event["job"]
    made = official.RunEvent(
        eventType=official.RunState(event["eventType"]),
        eventTime=event["eventTime"],
        producer=event["producer"],
        run=official.Run(runId=run["runId"], facets={name: facet_of(one) for name, one in run["facets"].items()}),
        job=official.Job(
            namespace=job["namespace"],
            name=job["name"],
            facets={name: facet_of(one) for name, one in job["facets"].items()},
        ),
        inputs=[dataset_of(official.InputDataset, one) for one in event["inputs"]],
        outputs=[dataset_of(official.OutputDataset, one) for one in event["outputs"]],
    )
    return Serde.to_dict(made)


def without_minor(event: Any) -> Any:
    """The event with the major versions of schemas alone, and without what is empty: the classes write no null."""
    text = re.sub(r"/(\d+)-\d+-\d+/", r"/\1/", json.dumps(event, sort_keys=True))
    return _filled(json.loads(text))


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _filled(one) for name, one in value.items()}
        return {name: one for name, one in kept.items() if one not in ({}, [], None)}
    return [_filled(one) for one in value] if isinstance(value, list) else value


def test_a_run_starts_and_completes_under_one_id(world):
    events: list[dict[str, Any]] = []
    with world.story.open(runs=world.folder / "runs") as retriever:
        summary = retriever.run(REQUESTS, emit=events.append)
    start, complete = events
    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    uuid.UUID(start["run"]["runId"])
    assert datetime.fromisoformat(start["eventTime"]) <= datetime.fromisoformat(complete["eventTime"])
    assert start["inputs"] == complete["inputs"] and start["job"] == complete["job"]
    written = {one["name"]: one for one in complete["outputs"]}
    shown = written[f"runs/{summary.run_id}/snapshots"]
    assert shown["outputFacets"]["outputStatistics"]["rowCount"] == 3  # ana audits the project
    for event in events:
        assert without_minor(by_official_classes(event)) == without_minor(event)
    told = json.dumps(events)
    assert SAYS not in told and "src/retry.py" not in told and '"ana"' not in told


def test_rows_of_whole_tables_are_an_auditor_s(world):
    events: list[dict[str, Any]] = []
    with world.story.open(principal="bob", runs=world.folder / "runs") as retriever:
        retriever.run([REQUESTS[0] | {"request_id": "ol-bob"}], emit=events.append)
    assert events[-1]["eventType"] == "COMPLETE"
    assert all("outputFacets" not in one for one in events[-1]["outputs"])


def test_a_run_that_breaks_off_fails_and_completes_when_it_is_resumed(world, monkeypatch):
    events: list[dict[str, Any]] = []
    with world.story.open(runs=world.folder / "runs", shard_requests=1) as retriever:
        with monkeypatch.context() as broken:
            kept = shards.ShardJob.run
            broken.setattr(
                shards.ShardJob, "run", lambda job, shard, at: kept(job, shard, at) if shard < 1 else _full()
            )
            with pytest.raises(OSError) as broke_off:
                retriever.run([one | {"request_id": one["request_id"] + "-b"} for one in REQUESTS], emit=events.append)
        start, fail = events
        assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
        assert fail["run"]["facets"]["errorMessage"]["message"].startswith("Expected to finish the run, got No space")
        assert without_minor(by_official_classes(fail)) == without_minor(fail)
        begun = re.search("run --resume (run-[0-9a-z]+)", str(broke_off.value))
        assert begun
        retriever.run(resume=begun[1], emit=events.append)
    assert [event["eventType"] for event in events] == ["START", "FAIL", "START", "COMPLETE"]
    assert len({event["run"]["runId"] for event in events}) == 1


def _full() -> None:
    raise OSError(28, "No space left on device")
