"""Arrow columns and NumPy arrays: what every step is written in.

- `keys`: rows found by key; `orders`: rows in order; `list_columns`: lists taken apart; `ragged`: groups and their ranges
- `numbers`: sums that are exact in any order; `kept`: what is worked out once
- identity: `digests` (of tables), `row_forms` (of rows), `array_bytes` (what both read)
"""
