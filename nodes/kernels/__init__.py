"""Loops compiled by numba: the same numbers as the NumPy code, faster where there are many requests.

- `compiled`: whether they are used, and where numba caches them
- over posting lists: `lookup_kernels`, `list_kernels`, `posting_kernels`, `top_rows_kernels`, `block_max_kernels`
- over vectors: `vector_kernels`, `product_tiles`; over the bytes of texts: `text_kernels`
- `selection_kernels`: top-k selection, shared by all of them
"""
