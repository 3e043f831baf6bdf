"""Interfaces of other documents over this package's own line: `document_004`, and `stored_records` of its store."""
