"""Linear layers in whole numbers: weights int8 per output, inputs int8 per token, sums in int32, scales in float32.

Reads a torch module, float32. Gives the same module with its linear layers replaced, which is faster on a CPU with dot
products of bytes.

The scheme is that of Dettmers et al., LLM.int8() (2022): every row of the input and of the weights has a scale of its own.
Where a few columns of the input are far greater than the others, as before attention, what a byte leaves over is written
in a second byte, in place of that paper's outliers. Sums of products of bytes are exact, so no order of summation,
number of threads or batch changes them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

__all__ = ["in_int8", "products_are_exact"]

GREATEST = 127
"""Of an int8, both ways: -128 is not used, so that a value and its negative are equally far from 0."""
_FINER = 2 * GREATEST
"""Steps of the second byte in one of the first, which leaves at most half of one over."""
_LEAST = 1e-12
"""The scale of a row of zeros."""
_product: Any = torch._int_mm  # pyright: ignore[reportPrivateImportUsage] - the one product of bytes that torch has for CPUs


class _Reading:
    """Rows in bytes. What was read finely is kept, because siblings read one tensor, as those of attention do.

    The tensor is kept with it, so that no other one can have its identity meanwhile.
    """

    def __init__(self, *, fine: bool) -> None:
        self.fine = fine
        self._last: tuple[Any, Any] = None, None

    def of(self, values: Any) -> tuple[Any, Any, Any]:
        """Scale float32[rows, 1], bytes int8[rows, inputs], and the second bytes, None unless `fine`."""
        last, found = self._last
        if last is values:
            return found
        rows = values.reshape(-1, values.shape[-1])
        scale = _scale(rows)
        steps = rows / scale
        whole = steps.round()
        rest = steps.sub_(whole).mul_(_FINER).round_().to(torch.int8) if self.fine else None
        found = scale, whole.to(torch.int8), rest
        if self.fine:
            self._last = values, found
        return found


class Int8Linear(torch.nn.Module):
    """`torch.nn.Linear` of int8 weights; with a fine reading its input comes in two bytes."""

    def __init__(self, layer: torch.nn.Linear, reading: _Reading) -> None:
        super().__init__()
        self._reading = reading
        weight = layer.weight.detach()
        scale = _scale(weight)
        self.weight: Any = (weight / scale).round().to(torch.int8).t().contiguous()
        self.scale: Any = scale.t().contiguous()
        self.bias: Any = torch.zeros(len(weight)) if layer.bias is None else layer.bias.detach()

    def forward(self, values: Any) -> Any:
        """float32[..., inputs] to float32[..., outputs]."""
        scale, whole, rest = self._reading.of(values)
        found = _product(whole, self.weight).float()
        if rest is not None:
            found.add_(_product(rest, self.weight).float(), alpha=1 / _FINER)
        return found.mul_(scale).mul_(self.scale).add_(self.bias).view(*values.shape[:-1], -1)


def in_int8(module: Any, fine: Collection[str] = ()) -> Any:
    """The module with every linear layer of it in int8; it is changed in place.

    Layers with one of the names `fine` read two bytes; where one module holds several of them, they read one input.
    """
    shared = _Reading(fine=True)
    for name, child in module.named_children():
        if isinstance(child, torch.nn.Linear):
            setattr(module, name, Int8Linear(child, shared if name in fine else _Reading(fine=False)))
        else:
            in_int8(child, fine)
    return module


def products_are_exact() -> bool:
    """Whether torch adds up products of bytes without losing any, as some versions did on some CPUs."""
    rows, weight = (torch.full(shape, GREATEST, dtype=torch.int8) for shape in ((32, 64), (64, 32)))
    return bool((_product(rows, weight) == 64 * GREATEST**2).all())


def _scale(rows: Any) -> Any:
    """What one step of an int8 is worth in each row, float32[rows, 1]."""
    return rows.abs().amax(dim=1, keepdim=True).clamp_min_(_LEAST).div_(GREATEST)
