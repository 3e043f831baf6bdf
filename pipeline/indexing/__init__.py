"""Indexing: sources become a generation of the corpus.

- `request`: what to read; `importing`: one `index`; `report`: what it read, in words; `following`: it again before a question
- `reader_digest`: the code and libraries that a row depends on, so that a change reads everything again
"""
