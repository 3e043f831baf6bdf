"""A model of sentence-transformers with random weights in a folder, small enough to be made by a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_cross_encoder import WORDS

PROMPTS = {"query": "what is the ", "document": "of the "}


def encoder_at(folder: Path, *, seed: int = 0, pooling: str = "cls", **named: Any) -> Path:
    """A BERT of random weights with pooling, a normalization, and prompts, as `save_pretrained` writes it."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    torch.manual_seed(seed)
    bert = folder.parent / f"{folder.name}-bert"
    bert.mkdir(parents=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (bert / "vocab.txt").write_text("\n".join(words) + "\n")
    config = BertConfig(
        vocab_size=len(words), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64, initializer_range=1.0,
    )  # fmt: skip
    BertModel(config).save_pretrained(bert)
    BertTokenizerFast(vocab=str(bert / "vocab.txt"), model_max_length=64).save_pretrained(bert)
    parts = [Transformer(str(bert)), Pooling(32, pooling_mode=pooling), Normalize()]
    parts[0].max_seq_length = 32
    SentenceTransformer(modules=parts, device="cpu", **{"prompts": PROMPTS, **named}).save_pretrained(
        str(folder), create_model_card=False
    )
    return folder
