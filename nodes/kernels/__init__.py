"""Loops compiled by numba: the same numbers as the NumPy code, faster where there are many requests.

- `compiled`: whether they are used, and where numba caches them; `loops`: their types
- over posting lists: `posting_kernels`; over vectors: `vector_kernels`, `product_tiles`
"""
