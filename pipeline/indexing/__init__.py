"""Indexing: sources become a generation of the corpus.

- `request`: what to read; `importing`: one `index`; `report`: what it read, in words; `following`: what a corpus follows; `freshness`: it is read again before a question
"""
