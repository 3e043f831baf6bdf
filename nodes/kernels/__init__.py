"""Compiled loops of numba: the same numbers as the arrays of NumPy beside them, sooner where requests are many.

- `compiled`: whether they are used, and where numba keeps them
- over posting lists: `lookup_kernels`, `list_kernels`, `posting_kernels`, `top_rows_kernels`, `block_max_kernels`
- over vectors: `vector_kernels`, `product_tiles`; over the bytes of texts: `text_kernels`
- `selection_kernels`: what all of them choose with
"""
