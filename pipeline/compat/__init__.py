"""Interfaces of other documents over this package's own line.

- `document_004`: its functions and classes, and its store of documents; `stages`: its seven stage functions
- `stored_records`: the records of the store
"""
