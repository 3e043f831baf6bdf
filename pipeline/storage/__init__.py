"""Storage: folders and object stores, durable writes and locks.

- `places`: a path or URL; `durable`: atomic, durable writes
- `chain`: hash-chained lines whose last one says what is current; `signing`: their signatures
- `file_access`: what others can read, folders that are not sources, and locks
"""
