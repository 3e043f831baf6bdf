"""Heads of a corpus and lines of LOG are signed where there is a key: what was changed or lengthened without it is refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import ask, run
from corpus_rows import HashEncoder, day, import_rows
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from scoped_retrieval.pipeline.runs import store as runs_store
from scoped_retrieval.pipeline.runs.log import LOG, RunLog
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


@pytest.fixture(name="runs")
def runs_fixture(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The runs of two questions, asked with a signing key that is trusted from now on."""
    folder = tmp_path / "keys"
    folder.mkdir()
    signing, trusted = keys(folder)
    monkeypatch.setenv("SCOPED_RETRIEVAL_SIGNING_KEY", str(signing))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    assert run("--adopt", "status", capsys=capsys)[0] == 0
    ask(capsys=capsys)
    ask(capsys=capsys)
    monkeypatch.setenv("SCOPED_RETRIEVAL_TRUSTED_KEY", str(trusted))
    return shop / ".scoped-retrieval/runs"


def verified(capsys: pytest.CaptureFixture[str]) -> tuple[int, bool]:
    """The exit code of `verify`, and whether it reports the log."""
    code, out, _ = run("verify", "--json", capsys=capsys)
    problems = [problem for one in json.loads(out)["runs"] for problem in one["problems"]]
    return code, any(problem["part"] == LOG for problem in problems)


def test_every_writer_signs_its_line(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verified(capsys) == (0, False)
    monkeypatch.setattr(runs_store, "SHRINKS", 1)  # sessions of one question, too
    monkeypatch.delenv("SCOPED_RETRIEVAL_TRUSTED_KEY")  # the corpus was indexed before there was a key
    row = {"question": "who has a role?", "project": "shop", "purpose": "answer-question"}
    Path("q.jsonl").write_text(json.dumps(row) + "\n")
    snapshot = json.loads(run("log", "--json", capsys=capsys)[1])[0]["snapshot_id"]
    Path("answer.txt").write_text("Nobody.")
    writers = [
        ("run", "q.jsonl"), ("verify", snapshot, "--answer", "answer.txt"), ("gc",),
        ("erase", "--user", "ana", "--project", "shop", "--yes"),
    ]  # fmt: skip
    for command in writers:
        before = len(RunLog(runs).lines())
        run(*command, capsys=capsys)
        lines = RunLog(runs).lines()
        assert len(lines) > before and all(line.signature for line in lines)


def test_a_line_of_somebody_without_the_key_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RunLog(runs).commit("answer", {"run_id": RunLog(runs).lines()[-1].body["run_id"], "snapshot_id": "none"})
    assert verified(capsys) == (5, True)
