"""A tokenizer of a few words, as a file that Hugging Face `tokenizers` reads."""

from __future__ import annotations

import json
from pathlib import Path


def tokenizer_file(folder: Path) -> Path:
    vocabulary = {"[UNK]": 0, "one": 1, "two": 2}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }  # fmt: skip
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return path
