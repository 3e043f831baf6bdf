"""Signed heads."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from corpus_rows import HashEncoder, day, import_rows
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from scoped_retrieval.pipeline.storage.signing import Signer
from stored_corpus import manifest_at, repin, written_again

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization", reason="needs the extra `sign`")
from signing_keys import keys  # noqa: E402  # only with the extra


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Signer]:
    """A corpus with two publications, each signed."""
    signing, trusted = keys(tmp_path)
    signer = Signer(signing_key=signing, trusted_key=trusted)
    add(Corpus.create(tmp_path / "corpus", signer), "one")
    add(Corpus.open(tmp_path / "corpus", signer=signer), "two")
    return tmp_path / "corpus", signer


def add(corpus: Corpus, text: str, number: int = 1) -> None:
    corpus.append(import_rows({"text": text, "path": f"{text}.md"}), now=day(number))


def reader(signer: Signer) -> Signer:
    return replace(signer, signing_key=None)


def texts(path: Path, signer: Signer) -> list[str]:
    return sorted(Corpus.open(path, signer=signer).frame().evidence["text"].to_pylist())


def test_a_corpus_that_was_rewritten_with_a_chain_that_fits_is_refused(signed: tuple[Path, Signer]) -> None:
    path, signer = signed
    at = manifest_at(path)
    at.write_text(json.dumps(json.loads(at.read_text()) | {"created": "2020-01-01T00:00:00+00:00"}))
    repin(path)
    assert texts(path, Signer()) == ["one", "two"]  # not detectable without a key
    with pytest.raises(VerificationError):
        Corpus.open(path, signer=reader(signer))


@pytest.mark.parametrize("key", [None, "eve"])
def test_a_writer_without_the_key_writes_nothing(signed: tuple[Path, Signer], tmp_path: Path, key: str | None) -> None:
    path, signer = signed
    files = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    writer = Corpus.open(path, signer=replace(signer, signing_key=keys(tmp_path, key)[0] if key else None))
    for act in (
        lambda: add(writer, "three"),
        lambda: written_again(writer, day(3)),
        lambda: writer.gc(),
        lambda: writer.erase(Selection("ann", frozenset({"shop"}), source="workspace:shop"), now=day(3)),
        lambda: writer.publish(import_rows({"text": "new"}), now=day(3), encoder=HashEncoder()),
    ):
        with pytest.raises(StoreError, match=r"Expected the signing key of .*ann.pub.pem, got "):
            act()
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == files


def test_the_settings_sign_the_heads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    signing, trusted = keys(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("The session times out after an hour.")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_SIGNING_KEY", str(signing))
    monkeypatch.setenv("SCOPED_RETRIEVAL_TRUSTED_KEY", str(trusted))
    assert main(["index", "docs", "--project", "shop", "--no-semantic"]) == 0
    assert main(["ask", "when does the session time out", "--project", "shop"]) == 0
    assert "after an hour" in capsys.readouterr().out
    assert main(["verify", "corpus"]) == 0
    file = tmp_path / ".scoped-retrieval/corpus/HEADS"
    file.write_text(re.sub(r"^(\w{64} \{.*\}) \S+$", r"\1", file.read_text(), flags=re.MULTILINE))
    assert main(["ask", "when does the session time out", "--project", "shop"]) != 0
    assert "got no signature" in capsys.readouterr().err
