"""Arrow columns and NumPy arrays: what every step is written in.

- `keys`: rows found by key; `orders`: rows in order; `list_columns`: lists taken apart; `ragged`: groups and their ranges
- `numbers`: sums that are exact in any order; `kept`: cached values
- `array_bytes`: values and texts as the bytes they are; identity out of them: `digests` (of tables, by `row_layouts`), `row_forms` (of rows)
- `hidden_characters`: what acts on a terminal or hides, as escapes
"""
