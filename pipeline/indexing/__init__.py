"""Indexing: sources become a generation of the corpus.

- `following`: what to read, and what a corpus follows; `freshness`: reading it again before a question; `importing`: one `index`;
  `report`: what it read, in words
"""
