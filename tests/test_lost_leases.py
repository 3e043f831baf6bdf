"""A writer that was stopped until its lease ran out publishes nothing and removes nothing: it looks again right before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.nodes.errors import BusyError
from scoped_retrieval.pipeline.corpus import Corpus, Selection, erasing, manifest

ROWS = ({"text": "first", "source_id": "doc:first"}, {"text": "second"})


def lost(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """The lease is another's by the time that this module looks at it."""

    def confirm(_: Any) -> None:
        raise BusyError("Lost the lock - at LOCK")

    monkeypatch.setattr(module, "confirm", confirm)


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but locks, with its bytes."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and "LOCK" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if ".locks" not in path.parts}


@pytest.mark.parametrize(
    ("module", "action"),
    [
        (manifest, lambda corpus: corpus.publish(import_rows({"text": "third"}), now=day(3))),
        (erasing, lambda corpus: corpus.gc(1)),
        (erasing, lambda corpus: corpus.erase(Selection("ana", frozenset({"shop"}), source="doc:first"), now=day(3))),
    ],
    ids=["publish", "gc", "erase"],
)
def test_a_corpus_stays_as_it_was_for_whoever_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, action: Callable[[Corpus], object]
) -> None:
    corpus = Corpus.create(tmp_path)
    for number, row in enumerate(ROWS, start=1):
        corpus.publish(import_rows(row), now=day(number))
    stood = {name: data for name, data in files(tmp_path).items() if name.startswith(("packs", "generations"))}
    lost(monkeypatch, module)
    with pytest.raises(BusyError, match="Lost the lock"):
        action(corpus)
    assert stood.items() <= files(tmp_path).items()
    if module is manifest:
        assert Corpus.open(tmp_path).frame().evidence.num_rows == 2
