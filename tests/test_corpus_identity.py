from __future__ import annotations

from typing import Any

import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.pipeline.corpus.incoming import incoming


def ids(*rows: dict[str, Any]) -> list[str]:
    """The id of each row."""
    return [incoming(import_rows(dict(row)), day(1)).evidence["evidence_id"][0].as_py() for row in rows]


def test_an_id_has_not_changed_since_it_was_first_given() -> None:
    assert ids({"text": "one"}) == ["o1rbnu1a42gbf176o7ve6mi6p3"]


@pytest.mark.parametrize(
    "change",
    [
        {"owner_project": "bank"}, {"owner_user": "ana"}, {"source_id": "workspace:other"}, {"path": "b.md"},
        {"path": None}, {"path": ""}, {"section": "S"}, {"section": ""}, {"text": "two"}, {"occurrence": 1},
        {"branch": "dev"}, {"workspace_root": "/w"},
    ],
)  # fmt: skip
def test_everything_an_id_is_made_of_changes_it(change: dict[str, Any]) -> None:
    one, other = ids({"text": "one"}, {"text": "one"} | change)
    assert one != other


def digest(row: dict[str, Any], now: int = 1) -> bytes:
    """The digest of what describes a row."""
    return incoming(import_rows(row), day(now)).evidence["row_digest"][0].as_py()


@pytest.mark.parametrize(
    "change",
    [
        {"zone": "public"}, {"zone": ""}, {"authority": 0}, {"confidence": 0.5}, {"principals": []}, {"title": "T"},
        {"principals": ["ana"]}, {"valid_from": day(1)}, {"generated": True}, {"redactions": [{"start": 0, "end": 1}]},
    ],
)  # fmt: skip
def test_a_row_digest_covers_what_describes_a_row(change: dict[str, Any]) -> None:
    assert digest({"text": "one"} | change) != digest({"text": "one"})
