"""Indexing: sources become a generation of the corpus.

- `importing`: one `index`; `report`: what it read, in words
- `reader_digest`: the code and libraries that a row depends on, so that a change reads everything again
"""
