"""What the encoder reads of a row: outlines of code that defines something, the text of everything else."""

from __future__ import annotations

from typing import Any

import pytest
from scoped_retrieval.nodes.tables import EVIDENCE
from scoped_retrieval.pipeline.corpus.vectors import encoded_texts
from selection_line import ROW

PYTHON = '''@cache
# parse_user was slow
def parse_user(name: str) -> User:
    """
    Read a user from one line.

    Long words about it.
    """
    return User(name)
'''


def encoded(text: str, **columns: Any) -> str:
    row = ROW | {"evidence_id": "a", "text_sha256": "", "text": text, "path": "src/app.py"} | columns
    return encoded_texts(EVIDENCE.from_rows([row]))[0].as_py()


def test_an_outline_is_path_section_signature_documentation_and_names() -> None:
    assert encoded(PYTHON, section="Users.parse_user", symbols=["Users.parse_user", "parse_user"]) == (
        "src/app.py\nUsers.parse_user\ndef parse_user(name: str) -> User:\nRead a user from one line.\n"
        "Users.parse_user, parse_user"
    )


def test_the_body_of_a_definition_is_no_part_of_its_outline() -> None:
    changed = PYTHON.replace("return User(name)", "return User(name.strip())")
    names = {"section": "parse_user", "symbols": ["parse_user"]}
    assert encoded(changed, **names) == encoded(PYTHON, **names)
    assert encoded(PYTHON.replace("name: str", "line: str"), **names) != encoded(PYTHON, **names)


@pytest.mark.parametrize(
    "columns", [{"symbols": []}, {"symbols": None}, {"evidence_kind": "doc", "symbols": ["parse_user"]}]
)
def test_of_other_rows_title_section_and_text_are_read(columns: dict[str, Any]) -> None:
    assert encoded(PYTHON, title="Users", section="Reading", **columns) == f"Users\nReading\n{PYTHON}"
