"""A cross-encoder of random weights in a folder, small enough to be made by a test."""

from __future__ import annotations

from pathlib import Path

WORDS = ["role", "admin", "default", "session", "token", "cache", "guest", "is", "the", "of", "what", "login", "retry"]


def model_at(folder: Path, *, labels: int = 1, seed: int = 0) -> Path:
    """A BERT of random weights with one label, as `save_pretrained` writes it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    torch.manual_seed(seed)
    folder.mkdir(parents=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=160, initializer_range=1.0, id2label={n: str(n) for n in range(labels)},
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=160).save_pretrained(folder)
    return folder
