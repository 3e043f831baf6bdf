"""Makers that several test files share: the line's tables for a few requests, and a tiny corpus."""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis
import pyarrow as pa
import pytest
from failing_reads import FailingReads
from loopback_s3 import loopback_s3, of_store
from scoped_retrieval.nodes import audit_snapshot
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.engines.ray_engine import RayEngine
from scoped_retrieval.pipeline.runs.parts import DECLARED
from scoped_retrieval.pipeline.sources.importing import normalize

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True, scope="session")
def state_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Which corpora and runs are known is not read from, or written for, the user of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """One node of Ray, on this machine alone, and one a process: native threads of a connection live on after it ends."""
    ray = pytest.importorskip("ray", reason="needs the extra ray")
    for module in map(importlib.import_module, ("dying_encoder", "stand_in_encoder")):  # no worker has them on its path
        ray.cloudpickle.register_pickle_by_value(module)
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # its workers keep the environment that they start in
            for name, value in of_store().items():
                patch.setenv(name, value)
            stack.enter_context(RayEngine().ready())
        yield


@pytest.fixture(autouse=True)
def loops_as_in_a_new_process() -> None:
    """Compiled loops that another test has loaded are not taken where they would not pay: a planted fault is in the arrays."""
    compiled.load.cache_clear()


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _value(type_: pa.DataType, number: int) -> Any:
    if pa.types.is_boolean(type_):
        return True
    if pa.types.is_integer(type_):
        return number
    if pa.types.is_floating(type_):
        return number / 4
    if pa.types.is_timestamp(type_):
        return NOON
    if pa.types.is_list(type_):
        return [] if pa.types.is_struct(type_.value_type) else [_value(type_.value_type, number)]
    return f"v{number}"


def filled(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """A declared table with the given values; every other required column gets some value."""
    declared = TABLES[name]
    full = []
    for number, row in enumerate(rows, start=1):
        defaults = {n: _value(c.type, number) for n, c in declared.columns.items() if not c.nullable}
        full.append(defaults | row)
    return declared.from_rows(full)


def line_tables(requests: int = 3, *, run_id: str = "run-000000000000000000", first: int = 1) -> dict[str, pa.Table]:
    """What the line gives for a few requests: each has one item shown, one dropped by rank, one hidden by a gate."""
    ids = [f"r{n:04d}" for n in range(first, first + requests)]
    fates = ("shown", "dropped", "hidden")
    pairs = [(r, f"{fate}-{r}") for r in ids for fate in fates]
    rows = {pair: index for index, pair in enumerate(pairs)}
    evidence = filled(
        "evidence",
        [{"evidence_id": e, "text": f"text of {e}", "redactions": None, "lifecycle": "verified"} for _, e in pairs],
    )
    placements = filled("placements", [{"row": i, "evidence_id": e} for i, (_, e) in enumerate(pairs)])
    shown = [(r, e) for r, e in pairs if e.startswith("shown")]
    bounded = [(r, e) for r, e in pairs if not e.startswith("hidden")]
    block = {r: f"block of {r}" for r in ids}

    def per_pair(name: str, some: list[tuple[str, str]], **columns: Callable[[str, str], Any]) -> pa.Table:
        return filled(
            name, [{"request_id": r, "evidence_id": e} | {c: f(r, e) for c, f in columns.items()} for r, e in some]
        )

    def per_request(name: str, **columns: Callable[[str], Any]) -> pa.Table:
        return filled(name, [{"request_id": r} | {c: f(r) for c, f in columns.items()} for r in ids])

    def place(request: str, evidence_id: str) -> int:
        return bounded.index((request, evidence_id))

    candidates = per_pair(
        "candidates",
        pairs,
        row=lambda r, e: rows[r, e],
        placement=lambda r, e: rows[r, e],
        withheld=lambda _, e: "hid" in e,
    )
    inputs: dict[str, pa.Table] = {
        "requests": per_request("requests", question=lambda r: f"question of {r}"),
        "failures": TABLES["failures"].empty(),
        "lane_states": TABLES["lane_states"].empty(),
        "captures": filled(
            "captures",
            [
                {"request_id": r, "snapshot_id": f"retr-snap-{run_id[4:]}-{first + i:04d}", "created_at": NOON}
                for i, r in enumerate(ids)
            ],
        ),
        "provenance": filled("provenance", [{"part": "code", "value": "c0de"}, {"part": "generation", "value": "g1"}]),
        "contracts": per_request("contracts", denied=lambda _: False, required_evidence=lambda _: []),
        "sub_queries": per_request("sub_queries", query_text=lambda r: f"query of {r}"),
        "hits": per_pair("hits", pairs),
        "candidates": candidates,
        "verdicts": per_pair(
            "verdicts",
            pairs,
            admitted=lambda _, e: "hidden" not in e,
            wall_disagreement=lambda *_: False,
            decided_by=lambda _, e: "visibility" if "hidden" in e else None,
            reason_code=lambda _, e: "not_model_visible" if "hidden" in e else None,
        ),
        "pool": per_pair(
            "pool",
            bounded,
            candidate=lambda r, e: rows[r, e],
            contract=lambda r, _: ids.index(r),
            row=lambda r, e: rows[r, e],
            placement=lambda r, e: rows[r, e],
        ),
        "score_terms": per_pair("score_terms", bounded),
        "ranked": per_pair("ranked", bounded, place=place, selected_reason=lambda *_: "current workspace file"),
        "packs": per_pair(
            "packs",
            bounded,
            place=place,
            members=lambda r, e: [place(r, e)],
            position=lambda _, e: int("shown" in e),
            reason_code=lambda _, e: None if "shown" in e else "low_score",
        ),
        "trimmed": per_pair(
            "trimmed",
            shown,
            place=place,
            members=lambda r, e: [place(r, e)],
            merged_rows=lambda _, e: [e],
            visible_text=lambda _, e: f"text of {e}",
            visible_sha256=lambda _, e: sha(f"text of {e}"),
            form=lambda *_: "full",
            conflict_note=lambda *_: False,
        ),
        "citations": per_pair("citations", shown, place=place, resolves=lambda *_: True),
        "item_details": per_pair("item_details", shown),
        "blocks": per_request(
            "blocks",
            text=lambda r: block[r],
            text_sha256=lambda r: sha(block[r]),
            block_ref=lambda r: sha(block[r])[:16],
        ),
        "evidence": evidence,
        "placements": placements,
    }
    for name in (
        "contract_bounds",
        "session_events",
        "anchors",
        "filter_ladder",
        "rerank_weights",
    ):
        inputs[name] = per_request(name)
    inputs["admissible"] = per_request("admissible", unmatched_sources=lambda *_: [])
    for name in (
        "structured_facts",
        "fact_checks",
        "trims",
        "grants",
        "purpose_policies",
        "kind_policies",
        "plan_rules",
        "mode_policies",
        "role_policies",
        "role_rules",
    ):
        inputs[name] = TABLES[name].empty()
    return judged(inputs)


def judged(inputs: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The inputs with what the audit step says about them."""
    steps = audit_snapshot
    records = (steps.request_record, steps.candidate_record)
    for node in (steps.decisions, *records, steps.conditions, steps.answer_record, steps.snapshots):
        names = [name for name in node.__annotations__ if name != "return"]
        inputs[node.__name__] = DECLARED[node.__name__].check(node(**{name: inputs[name] for name in names}))
    return inputs


FULL = os.environ.get("TEST_PROFILE") == "full"
"""Whether kill tests and large properties run, too: before a release."""


MEMORY = Path("/dev/shm")
"""A file system in memory, on Linux."""
ROOM = 2 << 30
"""The bytes that have to be free there. A whole run of the tests takes less than a third."""


def folders_in_memory() -> None:
    """Temporary folders lie in memory where there is room: syncing, renaming and removing small files on a disk is half
    of the time of the tests. Which of them the code asks for, and in which order, is the same; no test pulls the plug.
    `TMPDIR` names another place. The processes that the tests start take the same one.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    found = os.statvfs(MEMORY)
    if found.f_bavail * found.f_frsize >= ROOM:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests run in one process, so that its fixtures are made once; files go out in the order of their names.
    Tests of one `xdist_group` stay together, whatever their file.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class ByFile(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            return group.partition("::")[0] if group == nodeid else group

    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_configure(config: pytest.Config) -> None:
    folders_in_memory()
    if getattr(config.option, "numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # a process has a core to itself
    config.addinivalue_line("markers", "full: kill tests and large properties, run under TEST_PROFILE=full")
    hypothesis.settings.register_profile("full", max_examples=500, deadline=None)
    hypothesis.settings.register_profile("quick", max_examples=30, deadline=None)
    hypothesis.settings.load_profile("full" if FULL else "quick")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for among modules and tests while they are read, nor later: they stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every second process reads files from the last to the first, so that no two compile the same modules anew."""
    report = yield
    if isinstance(collector, pytest.Directory) and _number_of_process(collector.config) % 2:
        report.result.reverse()
    return report


def _number_of_process(config: pytest.Config) -> int:
    """Of the processes of xdist, from 0; 0 where there is one."""
    return int(getattr(config, "workerinput", {}).get("workerid", "gw0").removeprefix("gw"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.path)  # all processes agree
    if not FULL:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("full")])
        items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.fixture(name="line_tables")
def line_tables_fixture() -> Callable[..., dict[str, pa.Table]]:
    return line_tables


@pytest.fixture(name="filled")
def filled_fixture() -> Callable[[str, list[dict[str, Any]]], pa.Table]:
    return filled


@pytest.fixture(name="judged")
def judged_fixture() -> Callable[[dict[str, pa.Table]], dict[str, pa.Table]]:
    return judged


def evidence_rows(project: str, count: int = 12) -> pa.Table:
    """Rows of one project that share their words with those of any other."""
    numbers = range(count)
    return pa.table(
        {
            "source_id": [f"workspace:{project}"] * count,
            "path": [f"src/role_{n}.py" for n in numbers],
            "section": [f"role_{n}" for n in numbers],
            "text": [
                f"def role_{n}(user):\n    # default role of {project} {n}\n    return 'guest{n}'\n" for n in numbers
            ],
            "origin_class": ["workspace"] * count,
            "evidence_kind": ["code"] * count,
            "symbols": [[f"role_{n}"] for n in numbers],
            "version": [f"{n:040x}" for n in numbers],
            "line_start": [1] * count,
            "line_end": [3] * count,
            "byte_start": [0] * count,
            "byte_end": [60] * count,
            "recorded_time": [NOON - timedelta(days=n + 1) for n in numbers],
        }
    )


def make_corpus(folder: Path, *projects: pa.Table, principal: str = "ana") -> Corpus:
    """A corpus with `shop`, `pay`, ... from these rows, where `principal` may ask in `shop`."""
    corpus = Corpus.create(folder)
    for project, rows in zip(("shop", "pay"), projects, strict=False):
        normal, _ = normalize(rows, project=project, principal=principal, now=NOON)
        corpus.publish(
            normal, commits={"git:shop": rows.select(["version", "recorded_time"])}, project=project, now=NOON
        )
    write_starter_grants(folder / "grants.yaml", principal, "shop")
    return Corpus.open(folder)


@pytest.fixture(name="evidence_rows")
def evidence_rows_fixture() -> Callable[..., pa.Table]:
    return evidence_rows


@pytest.fixture(name="make_corpus")
def make_corpus_fixture() -> Callable[..., Corpus]:
    return make_corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Two projects with the same words; `ana` may ask in `shop`."""
    return make_corpus(tmp_path / "corpus", evidence_rows("shop"), evidence_rows("pay"))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Snapshots of two people, as `audited_runs` makes them; tests read them and write elsewhere."""
    from audited_runs import audited

    return audited(tmp_path_factory.mktemp("audited"))


@pytest.fixture(scope="session")
def failing_reads() -> FailingReads:
    """Lets reads fail; an audit hook stays for as long as the process, so that there is one."""
    return FailingReads()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The URL of a bucket of a server on this machine."""
    pytest.importorskip("s3fs", reason="needs the extra remote")
    pytest.importorskip("moto", reason="needs the extra dev")
    with loopback_s3() as url:
        yield url
