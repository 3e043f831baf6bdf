"""Storage: folders and object stores, durable writes, and locks.

- `places`: a path or URL; `durable`: writes that are whole or absent; `locks`: files and leases
- `file_access`: who may read what is written, and folders that are no sources
"""
