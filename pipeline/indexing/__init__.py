"""Indexing: sources become a generation of the corpus.

- `importing`: one `index`; `report`: what it read, in words
"""
