"""What a path says of its file: source, or a test, vendored code, an example, a benchmark, configuration, data."""

from __future__ import annotations

import pytest
from scoped_retrieval.pipeline.sources.file_kinds import file_kind


@pytest.mark.parametrize(
    ("path", "document_type"),
    [
        ("src/app.py", None),
        ("sympy/external/importtools.py", None),
        ("tests/helper.py", "test"),
        ("runtime-tests/deno/app.ts", "test"),
        ("pkg/_vendor/lib.py", "vendored"),
        ("examples/blog/app.py", "example"),
        ("benchmarks/tests/run.py", "test"),
        ("data/words.xyz", "data"),
    ],
)
def test_code_has_the_type_of_its_folder_and_name(path: str, document_type: str | None) -> None:
    assert (file_kind(path).evidence_kind, file_kind(path).document_type) == ("code", document_type)


@pytest.mark.parametrize("path", ["docs/guide.md", "examples/README.md", "vendor/LICENSE"])
def test_documents_have_none(path: str) -> None:
    assert (file_kind(path).evidence_kind, file_kind(path).document_type) == ("doc", None)
