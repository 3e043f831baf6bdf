"""What a path says of its file: how it is read, and whether it is a test, vendored code, an example, a benchmark, data."""

from __future__ import annotations

import pytest
from scoped_retrieval.pipeline.sources.file_kinds import file_kind


@pytest.mark.parametrize(
    ("path", "evidence_kind", "origin_class", "splitter"),
    [
        ("src/a.py", "code", "workspace", "python"),
        ("README", "doc", "project-doc", "lines"),
        ("docs/notes.unknown", "doc", "project-doc", "lines"),
        (".cursorrules", "rule", "project-doc", "lines"),
        ("ci/pytest-output.txt", "test-log", "workspace", "log"),
        ("logs/actions.csv", "test-log", "workspace", "log"),
        ("build-log.csv", "test-log", "workspace", "log"),
        ("logs/readme.md", "doc", "project-doc", "markdown"),
        ("Makefile", "code", "workspace", "lines"),
    ],
)
def test_the_path_decides_the_kind(path: str, evidence_kind: str, origin_class: str, splitter: str) -> None:
    kind = file_kind(path)
    assert (kind.evidence_kind, kind.origin_class, kind.splitter) == (evidence_kind, origin_class, splitter)
    assert kind.standing == ("untrusted" if evidence_kind == "test-log" else "evidence")


@pytest.mark.parametrize(
    ("path", "document_type"),
    [
        ("src/app.py", None),
        ("sympy/external/importtools.py", None),
        ("src/contest.py", None),
        ("src/test_app.py", "test"),
        ("tests/helper.py", "test"),
        ("tests/data.json", "test"),
        ("runtime-tests/deno/app.ts", "test"),
        ("pkg/_vendor/lib.py", "vendored"),
        ("examples/blog/app.py", "example"),
        ("benchmarks/tests/run.py", "test"),
        ("requirements-dev.txt", "config"),
        ("data/words.xyz", "data"),
        ("docs/guide.md", None),
        ("vendor/LICENSE", None),
    ],
)
def test_code_has_the_type_of_its_folder_and_name_and_documents_have_none(path: str, document_type: str | None) -> None:
    assert file_kind(path).document_type == document_type
