"""Heads outside the corpus folder, signed heads, and heads that are older than one that was accepted."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from corpus_rows import HashEncoder, day, import_rows
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.corpus import Corpus, Selection, Trust

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization", reason="needs the extra `sign`")
from signing_keys import keys  # noqa: E402  # only with the extra
from stored_corpus import heads, manifest_at, repin  # noqa: E402


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Trust]:
    """A corpus with two publications, each signed."""
    signing, trusted = keys(tmp_path)
    trust = Trust(signing_key=signing, trusted_key=trusted)
    add(Corpus.create(tmp_path / "corpus", trust), "one")
    add(Corpus.open(tmp_path / "corpus", trust=trust), "two")
    return tmp_path / "corpus", trust


def add(corpus: Corpus, text: str, number: int = 1) -> None:
    corpus.append(import_rows({"text": text, "path": f"{text}.md"}), now=day(number))


def reader(trust: Trust) -> Trust:
    return replace(trust, signing_key=None)


def texts(path: Path, trust: Trust) -> list[str]:
    return sorted(Corpus.open(path, trust=trust).frame().evidence["text"].to_pylist())


def test_a_corpus_that_was_rewritten_with_a_chain_that_fits_is_refused(signed: tuple[Path, Trust]) -> None:
    path, trust = signed
    at = manifest_at(path)
    at.write_text(json.dumps(json.loads(at.read_text()) | {"created": "2020-01-01T00:00:00+00:00"}))
    repin(path)
    assert texts(path, Trust()) == ["one", "two"]  # not detectable without a key
    with pytest.raises(VerificationError):
        Corpus.open(path, trust=reader(trust))


@pytest.mark.parametrize("key", [None, "eve"])
def test_a_writer_without_the_key_writes_nothing(signed: tuple[Path, Trust], tmp_path: Path, key: str | None) -> None:
    path, trust = signed
    files = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    writer = Corpus.open(path, trust=replace(trust, signing_key=keys(tmp_path, key)[0] if key else None))
    for act in (
        lambda: add(writer, "three"),
        lambda: writer.merge(now=day(3)),
        lambda: writer.gc(),
        lambda: writer.erase(Selection("ann", frozenset({"shop"}), source="workspace:shop"), now=day(3)),
        lambda: writer.publish(import_rows({"text": "new"}), now=day(3), encoder=HashEncoder()),
    ):
        with pytest.raises(StoreError, match=r"Expected the signing key of .*ann.pub.pem, got "):
            act()
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == files


def test_heads_can_stand_where_fewer_may_write(tmp_path: Path) -> None:
    path, trust = tmp_path / "corpus", Trust(heads=tmp_path / "heads")
    add(Corpus.create(path, trust), "one")
    assert not (path / "HEADS").exists()
    old = tmp_path / "old"
    shutil.copytree(path, old)
    add(Corpus.open(path, trust=trust), "two")
    assert texts(path, trust) == ["one", "two"]
    with pytest.raises(StoreError, match="Expected a corpus, got none"):
        Corpus.open(path)
    shutil.rmtree(path)
    shutil.copytree(old, path)
    with pytest.raises(StoreError, match="Expected a manifest, got none"):
        Corpus.open(path, trust=trust)


def test_the_settings_sign_and_place_the_heads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signing, trusted = keys(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("The session times out after an hour.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SCOPED_RETRIEVAL_CORPUS_HEAD", str(tmp_path / "heads"))
    monkeypatch.setenv("SCOPED_RETRIEVAL_SIGNING_KEY", str(signing))
    monkeypatch.setenv("SCOPED_RETRIEVAL_TRUSTED_KEY", str(trusted))
    assert main(["index", "docs", "--project", "shop", "--no-semantic"]) == 0
    assert main(["ask", "when does the session time out", "--project", "shop"]) == 0
    assert "after an hour" in capsys.readouterr().out
    assert main(["verify", "corpus"]) == 0
    assert trust_holds(tmp_path)
    file = tmp_path / "heads/HEADS"
    file.write_text(re.sub(r"^(\w{64} \{.*\}) \S+$", r"\1", file.read_text(), flags=re.MULTILINE))
    assert main(["ask", "when does the session time out", "--project", "shop"]) != 0
    assert "got no signature" in capsys.readouterr().err


def trust_holds(folder: Path) -> bool:
    known = json.loads((folder / "state/scoped-retrieval/chains.json").read_text())
    lines = heads(folder / "heads")
    return known[lines[0].hash] == [len(lines), lines[-1].hash]
