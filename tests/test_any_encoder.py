"""Any encoder from the command line: indexed and asked, off where it fails, and a corpus that is whole or as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import run
from model_server import ModelServer, model_server
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.encoders import openai_encoder
from scoped_retrieval.pipeline.encoders.openai_encoder import PROBE
from tiny_sentence_transformer import encoder_at

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
KEY = "sk-a1b2c3d4e5f6"
ASK = ("ask", "retrying of payment", "--project", "shop", "-c", "lanes=semantic")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(openai_encoder, "PAUSE_SECONDS", 0.0)
    (tmp_path / "doc.md").write_text(f"# Queues\n\nPayments are retried through a queue.\n\ntoken = '{SECRET}'\n")
    return tmp_path


@pytest.fixture
def served(place: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    monkeypatch.setenv("SCOPED_RETRIEVAL_ENCODER", server.encoder)
    return server


def index(capsys: pytest.CaptureFixture[str], *paths: str) -> tuple[int, str, str]:
    return run("index", *(paths or ("doc.md",)), "--project", "shop", capsys=capsys)


def lane(capsys: pytest.CaptureFixture[str], name: str = "semantic lane") -> dict[str, str]:
    checks = json.loads(run("doctor", "--json", capsys=capsys)[1])["checks"]
    return next(check for check in checks if check["name"] == name)


def test_a_corpus_is_indexed_and_asked_through_a_server(
    served: ModelServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert index(capsys)[0] == 0
    code, out, err = run(*ASK, capsys=capsys)
    assert (code, "Payments are retried" in out, "lane_" in err) == (0, True, False)
    assert lane(capsys)["status"] == "ok"
    assert served.encoder in lane(capsys)["found"]


def test_rows_and_questions_get_the_prompts_that_are_set(
    served: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCOPED_RETRIEVAL_ENCODER_QUERY_PROMPT", "query: ")
    monkeypatch.setenv("SCOPED_RETRIEVAL_ENCODER_PASSAGE_PROMPT", "passage: ")
    assert index(capsys)[0] == 0
    assert [text.startswith("passage: ") for text in served.asked if text != PROBE] == [True]
    served.asked.clear()
    assert run(*ASK, capsys=capsys)[0] == 0
    assert [text for text in served.asked if text != PROBE] == ["query: retrying of payment"]


def test_what_is_sent_is_redacted(served: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert index(capsys)[0] == 0
    assert run("ask", f"payment with {SECRET}", "--project", "shop", capsys=capsys)[0] == 0
    assert any("payment with" in text for text in served.asked)
    assert not any(SECRET in text for text in served.asked)
    assert PROBE in served.asked


def test_the_key_is_sent_and_stands_in_no_file_and_no_message(
    served: ModelServer, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TINY_KEY", KEY)
    monkeypatch.setenv("SCOPED_RETRIEVAL_ENCODER_KEY_VARIABLE", "TINY_KEY")
    said = [*index(capsys)[1:], *run(*ASK, capsys=capsys)[1:], *run("doctor", "--json", capsys=capsys)[1:]]
    served.broken = (401, KEY.encode())
    said += [*run(*ASK, capsys=capsys)[1:], *run("doctor", capsys=capsys)[1:]]
    (place / "doc.md").write_text("# Other\n\nOther text.\n")
    said += index(capsys)[1:]
    assert set(served.keys) == {f"Bearer {KEY}"}
    assert not any(KEY in text for text in said)
    assert any("TINY_KEY" in text for text in said)
    files = [file.read_bytes() for file in place.rglob("*") if file.is_file()]
    assert files
    assert not any(KEY.encode() in content for content in files)


BROKEN = {
    "status": ((500, b"{}"), "got HTTP status 500", "see the log of the server"),
    "key": ((401, b"{}"), "got HTTP status 401", "encoder_key_variable names the variable"),
    "html": ((200, b"<html>"), "got a response that is not JSON", "compare URL and model"),
}
SILENT = "the encoder of the corpus gives no vectors: Expected vectors of tiny, "


@pytest.mark.parametrize("how", BROKEN)
def test_a_server_that_answers_badly_is_an_error_of_index_and_makes_no_corpus(
    served: ModelServer, place: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    served.broken, expected, _ = BROKEN[how]
    code, _, err = index(capsys)
    assert (code, expected in err, f"at {served.url}" in err, "Hint:" in err) == (7, True, True, True)
    assert not (place / ".scoped-retrieval" / "corpus").exists()
    assert lane(capsys)["status"] == "fail"
    served.broken = None
    assert index(capsys)[0] == 0


@pytest.mark.parametrize("how", [*BROKEN, "dimension"])
def test_and_the_lane_is_off_for_a_question(served: ModelServer, capsys: pytest.CaptureFixture[str], how: str) -> None:
    assert index(capsys)[0] == 0
    if how == "dimension":
        served.dimensions = 3
        said, remedy = "is not the one that the corpus was indexed with", "index again"
    else:
        served.broken, said, remedy = BROKEN[how]
    code, out, err = run("ask", "payments are retried", "--project", "shop", capsys=capsys)
    assert (code, "Payments are retried" in out, "lane_off" in err) == (0, True, True)
    assert (said in err, remedy in err, "llama" in err, served.url in err) == (True, True, False, False), err
    assert (SILENT in err) is (how != "dimension")


def test_a_folder_is_indexed_and_asked_and_one_without_weights_is_named(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra semantic")
    model = encoder_at(place / "models" / "tiny")
    (place / "empty").mkdir()
    (place / "empty" / "modules.json").write_text("[]")
    monkeypatch.setenv("SCOPED_RETRIEVAL_ENCODER", "sentence-transformers:./empty")
    code, _, err = index(capsys)
    assert (code, "Expected weights in .safetensors, got none - at" in err) == (7, True)
    assert not (place / ".scoped-retrieval" / "corpus").exists()
    monkeypatch.setenv("SCOPED_RETRIEVAL_ENCODER", "sentence-transformers:models/tiny")
    assert index(capsys)[0] == 0
    code, out, err = run(*ASK, capsys=capsys)
    assert (code, "Payments are retried" in out, "lane_" in err) == (0, True, False)
    assert lane(capsys)["status"] == "ok"
    (model / "model.safetensors").unlink()
    code, out, err = run("ask", "payments are retried", "--project", "shop", capsys=capsys)
    assert (code, "Payments are retried" in out, "lane_off" in err) == (0, True, True)
    assert "gives no vectors: Expected weights in .safetensors, got none; a folder as `save_pretrained" in err
    assert str(model) not in err
    assert lane(capsys)["status"] == "fail"


def loaded(place: Path, text: str) -> dict[str, object]:
    (place / "user.toml").write_text(text)
    settings = load_settings(cwd=place, environ={}, user=place / "user.toml")
    return {name: settings[name] for name in ("encoder", "cross_encoder", "encoder_query_prompt")}


def test_a_password_in_an_address_is_refused_and_not_quoted(place: Path) -> None:
    with pytest.raises(InputError, match="Expected an address without a user, a password or a query") as caught:
        loaded(place, 'encoder = "openai:http://u:hunter2@localhost#m"')
    assert "hunter2" not in str(caught.value)
    user = place / "user.toml"
    user.write_text('encoder_key_variable = "sk-hunter2"')
    with pytest.raises(InputError, match="Expected the name of an environment variable in capitals") as caught:
        load_settings(cwd=Path("/"), environ={}, user=user)
    assert "hunter2" not in str(caught.value)
