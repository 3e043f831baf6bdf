"""Interfaces of other documents over this package's own line.

- `document_004`: its functions and classes; `stages`: its seven stage functions; `cases`: its camelCase names
- `corpus_store`: its store of documents; `stored_records`: what is in it
"""
