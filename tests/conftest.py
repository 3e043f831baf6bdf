"""Makers that several test files share: the line's tables for a few requests, and a tiny corpus."""

from __future__ import annotations

import gc
import importlib
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from command_line import indexed_fixture, shop_fixture  # noqa: F401 - fixtures of all files
from failing_reads import FailingReads
from loopback_s3 import loopback_s3, of_store
from role_corpus import evidence_rows, make_corpus
from scoped_retrieval.nodes.kernels import compiled
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.engines.ray_engine import RayEngine


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
