"""Indexing: sources become a generation of the corpus.

- `following`: what to read, what a corpus follows, and reading it again before a question; `importing`: one `index`;
  `report`: what it read, in words
"""
