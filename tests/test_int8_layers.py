"""Linear layers in bytes: close to the plain ones, each row by itself, sums exact."""

from __future__ import annotations

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra semantic")

from scoped_retrieval.pipeline.int8_layers import in_int8, products_are_exact  # noqa: E402 - it imports torch


def layer(weights: list[list[float]], bias: list[float] | None) -> torch.nn.Linear:
    made = torch.nn.Linear(len(weights[0]), len(weights), bias=bias is not None)
    with torch.no_grad():
        made.weight.copy_(torch.tensor(weights))
        if bias is not None:
            made.bias.copy_(torch.tensor(bias))
    return made


def read(plain: torch.nn.Linear, *, fine: bool = False) -> torch.nn.Module:
    """The layer in bytes."""
    return in_int8(torch.nn.Sequential(copy.deepcopy(plain)), fine=["0"] if fine else [])


@pytest.mark.parametrize("bias", [None, [0.5, -2.0]])
def test_values_that_bytes_hold_come_out_as_from_the_plain_layer(bias: list[float] | None):
    plain = layer([[127.0, -64.0, 3.0], [0.0, 0.0, 0.0]], bias)
    values = torch.tensor([[[127.0, 1.0, 0.0]], [[0.0, 0.0, 0.0]], [[-254.0, 4.0, 2.0]]])
    assert torch.equal(read(plain)(values), plain(values))


def test_a_second_byte_leaves_less_over():
    rng = np.random.default_rng(2)
    weights = np.round(rng.uniform(-126, 126, size=(6, 40)))
    weights[:, 0] = 127  # then bytes hold them all
    plain = layer(weights.tolist(), None)
    values = torch.tensor(rng.normal(size=(9, 40)) + 60 * (np.arange(40) == 7), dtype=torch.float32)
    errors = [(read(plain, fine=fine)(values) - plain(values)).abs().max().item() for fine in (False, True)]
    assert errors[1] < errors[0] / 50


def test_an_output_is_as_close_as_half_a_step_of_each_factor_allows():
    rng = np.random.default_rng(0)
    weights, values = rng.normal(size=(24, 48)), rng.normal(size=(10, 48))
    plain = layer(weights.tolist(), None)
    rows = torch.tensor(values, dtype=torch.float32)
    step, size = np.abs(values).max(1, keepdims=True) / 127, np.abs(weights).max(1) / 127
    bound = 0.5 * step * np.abs(weights).sum(1) + 0.5 * size * np.abs(values).sum(1, keepdims=True) + 12 * step * size
    difference = (read(plain)(rows) - plain(rows)).detach().abs().numpy()
    assert np.all(difference <= bound + 1e-4)
    assert difference.max() > 0


def test_a_row_does_not_depend_on_the_others():
    rng = np.random.default_rng(1)
    made = read(layer(rng.normal(size=(8, 16)).tolist(), [0.25] * 8))
    rows = torch.tensor(rng.normal(size=(5, 16)) * [[1], [1000], [1e-6], [0], [3]], dtype=torch.float32)
    assert torch.equal(made(rows), torch.cat([made(row[None]) for row in rows]))


def test_every_linear_layer_inside_a_module_is_replaced():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Sequential(torch.nn.GELU(), torch.nn.Linear(3, 1)))
    kinds = [type(part).__name__ for part in in_int8(module, fine=["0"]).modules()]
    assert kinds == ["Sequential", "Int8Linear", "Sequential", "GELU", "Int8Linear"]


def test_siblings_that_read_one_input_read_it_once_and_another_one_anew():
    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)

        def forward(self, values: torch.Tensor, others: torch.Tensor) -> list[torch.Tensor]:
            return [self.query(values), self.key(values), self.query(others), self.key(values)]

    plain = Pair()
    values, others = torch.randn(2, 4), torch.randn(2, 4)
    expected = [read(layer, fine=True)(given) for layer, given in
                ((plain.query, values), (plain.key, values), (plain.query, others), (plain.key, values))]  # fmt: skip
    for found, wanted in zip(in_int8(plain, fine=["query", "key"])(values, others), expected, strict=True):
        assert torch.equal(found, wanted)


def test_products_of_the_greatest_bytes_lose_nothing():
    assert products_are_exact()
