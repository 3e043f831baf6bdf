"""Indexing: sources become a generation of the corpus.

- `following`: what to read, and what a corpus follows; `importing`: one `index`; `report`: what it read, in words; `freshness`: it
  is read again before a question
"""
