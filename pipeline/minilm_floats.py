"""MiniLM in float32 for a CUDA device: tokens into unit vectors, in batches that all have one of a few shapes.

Reads the pinned weights. Gives `FloatMiniLM.vectors` and `device_class`. The fixed shape decides which kernels run, and
none of them adds rows of two texts; what texts stand beside one, and at which place, is held against each other on the
device itself before a vector is given, and a device where they matter is refused.

What one would otherwise get wrong: products in TF32 have ten bits of a fraction, and torch takes them where it is asked to
by a setting of the whole process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from ..nodes.errors import ModelError
from .minilm import HEADS, LAYERS, WIDTH

__all__ = ["LENGTHS", "FloatMiniLM", "device_class"]

LENGTHS = (32, 64, 128, 192, 256)
"""Tokens that texts are padded to."""
_EPSILON = 1e-12


def device_class(device: str) -> str:
    """What bits depend on: the compute capability of a CUDA device, such as `cuda-9.0`, or the name of any other.

    Raises:
        ModelError: there is no CUDA device.
    """
    if device != "cuda":
        return device
    if not torch.cuda.is_available():
        raise ModelError(
            "Expected a CUDA device, got none that torch can use - at encoder",
            hint="install torch for CUDA where there is such a device; elsewhere index with the encoder minilm/1, "
            "and ask a corpus that has vectors of minilm-cuda/1 without the lane semantic",
        )
    return "cuda-{}.{}".format(*torch.cuda.get_device_capability())


class FloatMiniLM:
    """The weights on a device, and batches of one shape per length."""

    def __init__(self, weights: Path, device: str, texts: int) -> None:
        """A batch has so many `texts`; those that are missing are empty.

        Raises:
            ModelError: there is no such device, or vectors depend on their neighbors there.
        """
        self.device_class = device_class(device)
        self._device, self._texts = device, texts
        self._weights: dict[str, Any] = load_file(weights, device=device)
        if not self._neighbors_do_not_matter():
            raise ModelError(f"Expected vectors that no neighbor changes, got others - at {self.device_class}")

    def vectors(self, texts: Sequence[Sequence[int]]) -> NDArray[np.int16]:
        """Unit vectors times 2**15, int16[texts, 384], of the ids of each text's tokens: 1 to 256.

        Raises:
            ModelError: torch is set to compute products in TF32.
        """
        if torch.get_float32_matmul_precision() != "highest":
            raise ModelError("Expected products in float32, got TF32 - at torch.set_float32_matmul_precision")
        found = np.empty((len(texts), WIDTH), dtype=np.int16)
        group = np.searchsorted(LENGTHS, [len(text) for text in texts])
        for which, length in enumerate(LENGTHS):
            members = np.flatnonzero(group == which)
            for start in range(0, len(members), self._texts):
                part = members[start : start + self._texts]
                mean = self._means([texts[at] for at in part], length)[: len(part)]
                unit = mean / np.linalg.norm(mean, axis=1, keepdims=True)
                found[part] = np.clip(np.rint(unit * 2**15), -(2**15), 2**15 - 1)
        return found

    @torch.inference_mode()
    def _means(self, texts: Sequence[Sequence[int]], length: int) -> NDArray[np.float64]:
        """The mean row of each text, float64[texts of a batch, 384]."""
        ids, mask = np.zeros((self._texts, length), dtype=np.int64), np.zeros((self._texts, length), dtype=bool)
        mask[:, 0] = True
        for row, text in enumerate(texts):
            ids[row, : len(text)], mask[row, : len(text)] = text, True
        there = torch.from_numpy(mask).to(self._device)
        words, positions, kinds = (
            self._weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        rows = words[torch.from_numpy(ids).to(self._device)] + positions[:length] + kinds[0]
        rows = self._norm(rows, "embeddings")
        for number in range(LAYERS):
            name = f"encoder.layer.{number}"
            heads = [
                self._linear(rows, f"{name}.attention.self.{part}").view(self._texts, length, HEADS, -1).transpose(1, 2)
                for part in ("query", "key", "value")
            ]
            given = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=there[:, None, None])
            given = given.transpose(1, 2).reshape(self._texts, length, WIDTH)
            rows = self._norm(rows + self._linear(given, f"{name}.attention.output.dense"), f"{name}.attention.output")
            wide = torch.nn.functional.gelu(self._linear(rows, f"{name}.intermediate.dense"))
            rows = self._norm(rows + self._linear(wide, f"{name}.output.dense"), f"{name}.output")
        total = (rows.double() * there[:, :, None]).sum(dim=1)
        return (total / there.sum(dim=1, keepdim=True)).cpu().numpy()

    def _linear(self, rows: Any, name: str) -> Any:
        return torch.nn.functional.linear(rows, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, rows: Any, name: str) -> Any:
        gain, shift = (self._weights[f"{name}.LayerNorm.{kind}"] for kind in ("weight", "bias"))
        return torch.nn.functional.layer_norm(rows, (WIDTH,), gain, shift, _EPSILON)

    def _neighbors_do_not_matter(self) -> bool:
        """Whether texts of every length have the same vectors alone, in a full batch, and in its other order."""
        rng = np.random.default_rng(0)
        for length in LENGTHS:
            texts = [rng.integers(1_000, 30_000, size=length - row % 16).tolist() for row in range(self._texts)]
            together, turned = self.vectors(texts), self.vectors(texts[::-1])[::-1]
            alone = np.vstack([self.vectors([text]) for text in texts[-3:]])
            if not (np.array_equal(together, turned) and np.array_equal(together[-3:], alone)):
                return False
        return True
