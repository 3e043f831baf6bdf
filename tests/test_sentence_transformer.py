"""A folder of sentence-transformers: its prompts, pooling and length; one vector per text; and nothing that is fetched."""

from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.pipeline.encoders.choice import EncoderChoice
from scoped_retrieval.pipeline.encoders.encoder import encoder_of
from scoped_retrieval.pipeline.encoders.folder_models import SentenceTransformerEncoder
from tiny_cross_encoder import WORDS
from tiny_sentence_transformer import PROMPTS, encoder_at

pytest.importorskip("sentence_transformers", reason="needs the extra semantic")

TEXTS = ("", "the default role is guest", "token of the session", "the cache of the login " * 40, "会话")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encoder_at(tmp_path_factory.mktemp("models") / "tiny")


def encoder_of_folder(folder: Path, **how: Any) -> SentenceTransformerEncoder:
    return SentenceTransformerEncoder(EncoderChoice(f"sentence-transformers:{folder}", **how))


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceTransformerEncoder:
    return encoder_of_folder(folder)


def test_vectors_are_those_of_the_library_with_the_prompts_of_the_folder(
    folder: Path, encoder: SentenceTransformerEncoder
) -> None:
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(folder), device="cpu")
    for text in TEXTS:
        for own, prompt in ((encoder.encode, PROMPTS["document"]), (encoder.encode_queries, PROMPTS["query"])):
            expected = plain.encode(prompt + text, show_progress_bar=False)
            assert own([text])[0] / 2**15 == pytest.approx(expected, abs=1e-3)


def test_pooling_and_length_are_those_of_the_folder(
    folder: Path, encoder: SentenceTransformerEncoder, tmp_path: Path
) -> None:
    mean = encoder_of_folder(encoder_at(tmp_path / "mean", pooling="mean"))
    assert not np.array_equal(mean.encode(["the role"]), encoder.encode(["the role"]))
    long = " ".join(WORDS * 5)
    assert np.array_equal(encoder.encode([long]), encoder.encode([f"{long} admin"]))  # 32 tokens, as the folder says


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=9), threads=st.integers(1, 3))
def test_a_vector_does_not_depend_on_neighbors_order_or_threads(
    encoder: SentenceTransformerEncoder, chosen: list[int], threads: int
) -> None:
    alone = np.vstack([encoder.encode([text]) for text in TEXTS])
    before = pa.cpu_count()
    pa.set_cpu_count(threads)
    try:
        assert np.array_equal(encoder.encode([TEXTS[at] for at in chosen]), alone[chosen])
    finally:
        pa.set_cpu_count(before)


def test_the_profile_names_files_and_not_their_folder(
    folder: Path, encoder: SentenceTransformerEncoder, tmp_path: Path
) -> None:
    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    (moved / "README.md").write_text("told to readers\n")
    again = encoder_of_folder(moved)
    assert again.profile == encoder.profile
    assert "+float32+32+32+" in again.profile
    assert str(folder) not in encoder.profile
    other = encoder_of_folder(encoder_at(tmp_path / "other", seed=1))
    assert other.profile != encoder.profile
    config = moved / "config_sentence_transformers.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"prompts": {"query": "q: "}}))
    assert encoder_of_folder(moved).profile != encoder.profile


def test_a_question_takes_the_folder_that_is_set_and_no_other(
    folder: Path, encoder: SentenceTransformerEncoder
) -> None:
    assert encoder_of(encoder.profile) is None
    found = encoder_of(encoder.profile, EncoderChoice(f"sentence-transformers:{folder}"))
    assert found is not None
    assert found.profile == encoder.profile


def test_another_process_loads_the_folder_and_refuses_another_model(tmp_path: Path) -> None:
    folder = encoder_at(tmp_path / "moving")
    encoder = encoder_of_folder(folder)
    assert encoder.profile
    sent = pickle.dumps(encoder)
    assert len(sent) < 1_000
    assert np.array_equal(pickle.loads(sent).encode(TEXTS[1:3]), encoder.encode(TEXTS[1:3]))
    (encoder_at(tmp_path / "second", seed=3) / "model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(ModelError, match=r"^Expected the model sentence-transformers.*, got sentence-trans.* - at"):
        pickle.loads(sent)


def without_layers(folder: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "layer.1." not in name}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no weights": (lambda at: (at / "model.safetensors").unlink(), r"weights in .safetensors, got none"),
    "fewer layers": (without_layers, r"weights of \d+ numbers, got \d+"),
    "no modules": (lambda at: (at / "modules.json").unlink(), r"the folder of a model with modules.json, got none"),
    "foreign modules": (
        lambda at: (at / "modules.json").write_text('[{"type": "other.Module"}]'),
        r"modules of sentence-transformers, got 1 of another package",
    ),
    "config": (lambda at: (at / "config.json").write_text("{"), r"a model that loads, got \w+"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_named(folder: Path, tmp_path: Path, damage: str) -> None:
    damaged = Path(shutil.copytree(folder, tmp_path / "damaged"))
    harm, expected = DAMAGE[damage]
    harm(damaged)
    with pytest.raises(ModelError, match=rf"^Expected {expected} - at .*damaged") as raised:
        _ = encoder_of_folder(damaged).profile
    assert raised.value.hint
