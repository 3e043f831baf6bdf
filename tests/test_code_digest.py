"""The digest of the code covers what the line imports, wherever it lies, and nothing else."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from scoped_retrieval import nodes, pipeline
from scoped_retrieval.pipeline.line.code_digest import BESIDE, INPUTS, code_digest, digest_of, modules
from scoped_retrieval.pipeline.line.driver import STEPS

FOLDERS = {name: Path(package.__file__ or "").parent for name, package in (("nodes", nodes), ("pipeline", pipeline))}


@pytest.fixture
def copied(tmp_path: Path) -> dict[str, Path]:
    for name, folder in FOLDERS.items():
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return {name: tmp_path / name for name in FOLDERS}


@pytest.mark.parametrize("module", [
    "nodes/recall/bm25", "nodes/audit_snapshot", "nodes/session_trail", "nodes/blocks/byte_runs", "pipeline/line/driver", "pipeline/line/lanes",
    "pipeline/requests/resolve", "pipeline/requests/fields", "pipeline/line/tokenizers", "pipeline/requests/commits", "pipeline/redaction/rules",
    "pipeline/corpus/postings", "pipeline/corpus/frame", "pipeline/corpus/deltas", "nodes/columns/row_forms",
    "pipeline/requests/presets",
])  # fmt: skip
def test_a_change_of_what_the_line_imports_is_another_code(copied: dict[str, Path], module: str):
    before = digest_of(copied, STEPS)
    assert before == code_digest(), "a copy elsewhere is the same code"
    file = copied["nodes"].parent / f"{module}.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    assert digest_of(copied, STEPS) != before


@pytest.mark.parametrize("module", [
    "nodes/answers/answer_checks", "nodes/answers/answer_values", "pipeline/maintenance/doctor", "pipeline/runs/verify",
    "pipeline/cli/app", "pipeline/storage/durable", "pipeline/corpus/store",
])  # fmt: skip
def test_a_change_of_anything_else_is_the_same_code(copied: dict[str, Path], module: str):
    before = digest_of(copied, STEPS)
    file = copied["nodes"].parent / f"{module}.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    assert digest_of(copied, STEPS) == before


def test_a_module_in_a_package_below_counts_once_it_is_imported(copied: dict[str, Path]):
    before = digest_of(copied, STEPS)
    deep = copied["nodes"] / "deep"
    deep.mkdir()
    (deep / "__init__.py").write_text("")
    (deep / "near.py").write_text("from .far import FAR as NEAR\n")
    (deep / "far.py").write_text("from ..columns.numbers import quantise\n\nFAR = 1\n")
    assert digest_of(copied, STEPS) == before
    step = copied["nodes"] / "query_planning.py"
    step.write_text(step.read_text() + "\nfrom .deep import (\n    near,  # a comment, with a comma\n)\n")
    assert {"nodes.deep", "nodes.deep.near", "nodes.deep.far"} <= modules(copied, STEPS).keys()
    linked = digest_of(copied, STEPS)
    (deep / "far.py").write_text("FAR = 2\n")
    assert digest_of(copied, STEPS) not in (before, linked)


def imported(name: str, source: bytes) -> Iterator[set[str]]:
    """What a module may mean by each relative import, as the parser reads it."""
    package = name.split(".")
    folder, *below = package
    if not FOLDERS[folder].joinpath(*below, "__init__.py").is_file():
        package = package[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join([*package[: len(package) + 1 - node.level], *([node.module] if node.module else [])])
            yield {base, *(f"{base}.{alias.name}" for alias in node.names)}


def test_every_import_of_a_covered_module_is_read_as_the_parser_reads_it():
    covered = modules(FOLDERS, STEPS)
    beside = {f"pipeline.{name}" for name in BESIDE}
    for name, source in covered.items():
        for meant in imported(name, source):
            assert meant & (covered.keys() | beside), f"{name} imports one of {sorted(meant)}"


def test_every_step_and_input_is_covered():
    assert {f"nodes.{step}" for step in STEPS} | {f"pipeline.{name}" for name in INPUTS} <= modules(
        FOLDERS, STEPS
    ).keys()
