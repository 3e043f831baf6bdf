"""Storage: folders and object stores, durable writes and locks.

- `places`: a path or URL; `durable`: atomic, durable writes; `locks`: file locks and leases
- `file_access`: permissions of written files, and folders that are not sources
"""
