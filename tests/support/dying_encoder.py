"""An encoder that kills its process the first time it meets a text: a worker lost in mid-work."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from stand_in_encoder import WordsByTheirStart


class DyingEncoder(WordsByTheirStart):
    """Dies once per text, as often as `deaths` says in all; a folder remembers across processes what it has met."""

    def __init__(self, folder: Path, deaths: int) -> None:
        self.folder, self.deaths = folder, deaths

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        for text in texts:
            mark = self.folder / hashlib.sha256(text.encode()).hexdigest()
            if len(list(self.folder.iterdir())) < self.deaths and not mark.exists():
                mark.touch()
                os._exit(1)
        return super().encode(texts)
