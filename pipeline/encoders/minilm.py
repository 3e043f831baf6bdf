"""MiniLM on a CPU: tokens of a few texts into unit vectors, with integer linear layers and without padding.

Reads the pinned weights. Gives `MiniLM.vectors`. The texts of a batch are concatenated in one array of rows. Linear
layers process all of them at once: weights int8 per output, inputs int8 per token, sums in int32, scales in float32,
the scheme of Dettmers et al., LLM.int8() (2022). Before attention, where a few columns are far greater than the others,
the remainder of a byte is stored in a second byte, in place of that paper's outliers.

Processors without instructions for sums of bytes (VNNI) use float32 for them, twenty times as fast there and the same
to the last bit: integers below 2**24 add up without rounding.

Note: if sums of floats depend on the batch, the last bits of a text's vector depend on the other texts. Here sums of
bytes are exact in any order, `minilm_kernels` works row by row, and attention runs once per text, at its own length, on
one thread, from equally aligned memory. Each thread has batches of its own: threads that share one wait for each other
after every layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from llvmlite import binding  # pyright: ignore[reportMissingImports]
from numpy.typing import NDArray
from safetensors.numpy import load_file

from ...nodes.kernels.compiled import kept_by_content
from .folder_models import single_threads

with kept_by_content(Path(__file__).parent, ("minilm_kernels",)):
    from .minilm_kernels import GREATEST, embedded, gelu, heads, in_bytes, normed, pooled


WIDTH = 384
LAYERS = 6
HEADS = 12
_BATCH_TOKENS = 512
"""The maximum number of tokens of a batch of several texts: the data between two layers stays in a core's cache."""
_ROWS = 32
"""The rows of a product are a multiple of this: torch prepares a product once per number of rows."""
_product: Any = torch._int_mm  # pyright: ignore[reportPrivateImportUsage] - the one product of bytes that torch has for CPUs
IN_BYTES = bool(binding.get_host_cpu_features().get("avx512vnni"))
"""Whether torch has a fast product of bytes for this processor."""
_EXACT = 2**24 // int(GREATEST) ** 2
"""The number of products of two bytes that add up in float32 without rounding, in any order."""


class Linear:
    """A linear layer in bytes: `weight` int8[inputs, outputs], its step size and the bias float32[outputs].

    The bytes of `weight` are stored as float32 if sums are computed with `in_bytes=False`.
    """

    def __init__(self, weight: NDArray[np.float32], bias: NDArray[np.float32], *, in_bytes: bool = IN_BYTES) -> None:
        """`weight` is float32[outputs, inputs]."""
        self.unit = np.maximum(np.abs(weight).max(axis=1), np.float32(1e-12)) / GREATEST
        whole = np.rint(weight / self.unit[:, None]).T.astype(np.int8 if in_bytes else np.float32, order="C")
        self.weight: Any = torch.from_numpy(whole)
        self.bias = bias

    def sums(self, rows: NDArray[np.int8], room: NDArray[np.int32]) -> NDArray[np.int32]:
        """Products with int8[..., inputs], int32[..., outputs]; they are written to `room`, which is flat."""
        flat = rows.reshape(-1, rows.shape[-1])
        found = room[: len(flat) * len(self.bias)].reshape(len(flat), len(self.bias))
        given, into = torch.from_numpy(flat), torch.from_numpy(found)
        if self.weight.dtype == torch.int8:
            _product(given, self.weight, out=into)
        else:
            given = given.float()
            into.copy_(given[:, :_EXACT] @ self.weight[:_EXACT])
            for start in range(_EXACT, given.shape[1], _EXACT):
                into += (given[:, start : start + _EXACT] @ self.weight[start : start + _EXACT]).int()
        return found.reshape(*rows.shape[:-1], len(self.bias))


class _Norm(NamedTuple):
    gain: NDArray[np.float32]
    shift: NDArray[np.float32]


class _Layer(NamedTuple):
    heads: Linear
    """Queries, keys and values."""
    out: Linear
    out_norm: _Norm
    up: Linear
    down: Linear
    down_norm: _Norm


class MiniLM:
    """The weights, and one pass over the tokens of a few texts."""

    def __init__(self, weights: Path) -> None:
        found = load_file(weights)

        def norm(name: str) -> _Norm:
            return _Norm(found[f"{name}.LayerNorm.weight"], found[f"{name}.LayerNorm.bias"])

        def linear(*names: str) -> Linear:
            weight, bias = (np.concatenate([found[f"{name}.{kind}"] for name in names]) for kind in ("weight", "bias"))
            return Linear(weight, bias)

        def layer(name: str) -> _Layer:
            return _Layer(
                linear(*(f"{name}.attention.self.{part}" for part in ("query", "key", "value"))),
                linear(f"{name}.attention.output.dense"), norm(f"{name}.attention.output"),
                linear(f"{name}.intermediate.dense"), linear(f"{name}.output.dense"), norm(f"{name}.output"),
            )  # fmt: skip

        self._words = found["embeddings.word_embeddings.weight"]
        self._positions = (
            found["embeddings.position_embeddings.weight"] + found["embeddings.token_type_embeddings.weight"][0]
        )
        self._norm = norm("embeddings")
        self._layers = [layer(f"encoder.layer.{number}") for number in range(LAYERS)]

    def vectors(self, texts: Sequence[Sequence[int]]) -> NDArray[np.int16]:
        """Unit vectors times 2**15, int16[texts, 384], of the token ids of each text, at least one per text."""
        with single_threads() as pool:
            return np.vstack(list(pool.map(self._batch, batches(texts))))

    def _batch(self, texts: Sequence[Sequence[int]]) -> NDArray[np.int16]:
        ends = np.cumsum([len(text) for text in texts]).tolist()
        parts = [slice(end - len(text), end) for text, end in zip(texts, ends, strict=True)]
        ids = np.concatenate([np.asarray(text, dtype=np.int64) for text in texts])
        places = np.concatenate([np.arange(len(text)) for text in texts])
        tokens, padded = len(ids), -(-len(ids) // _ROWS) * _ROWS
        room = np.empty(padded * 6 * WIDTH, dtype=np.int32)
        two, wide = np.empty((2, padded, WIDTH), dtype=np.int8), np.empty((padded, 4 * WIDTH), dtype=np.int8)
        one = two[0]
        step, other = np.empty((2, tokens), dtype=np.float32)
        rows, read = np.empty((tokens, WIDTH), dtype=np.float32), torch.empty(tokens, 3 * WIDTH)
        asked = [read[part].view(-1, 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)[:, None] for part in parts]
        embedded(ids, places, self._words, self._positions, *self._norm, rows, two, step)
        for layer in self._layers:
            heads(layer.heads.sums(two, room), step, layer.heads.unit, layer.heads.bias, read.numpy())
            for part, (query, key, value) in zip(parts, asked, strict=True):
                given = torch.nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)
                in_bytes(given.reshape(-1, WIDTH).numpy(), one[part], other[part])
            sums = layer.out.sums(one, room)
            normed(sums, other, layer.out.unit, layer.out.bias, *layer.out_norm, rows, two, step, False)
            gelu(layer.up.sums(one, room), step, layer.up.unit, layer.up.bias, wide, other)
            sums = layer.down.sums(wide, room)
            normed(sums, other, layer.down.unit, layer.down.bias, *layer.down_norm, rows, two, step, True)
        return np.stack([pooled(rows[part]) for part in parts])


def batches(texts: Sequence[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    """The texts in order, as many at a time as `_BATCH_TOKENS` allows."""
    batch: list[Sequence[int]] = []
    size = 0
    for ids in texts:
        if batch and size + len(ids) > _BATCH_TOKENS:
            yield batch
            batch, size = [], 0
        batch.append(ids)
        size += len(ids)
    yield batch


def products_are_exact() -> bool:
    """Whether torch adds up products of bytes exactly; some versions did not on some CPUs."""
    inputs, outputs = 4 * WIDTH, 32
    layer = Linear(np.ones((outputs, inputs), dtype=np.float32), np.zeros(outputs, dtype=np.float32))
    rows = np.full((_ROWS, inputs), GREATEST, dtype=np.int8)
    return bool((layer.sums(rows, np.empty(_ROWS * outputs, dtype=np.int32)) == inputs * int(GREATEST) ** 2).all())
