"""Operations on Arrow columns and NumPy arrays, used by every step.

- `keys`: look-ups by key, sorting rows, lists taken apart; `ragged`: groups and their ranges
- `numbers`: sums that are exact in any order; `kept`: cached values
- `array_bytes`: values and texts as canonical bytes; identity from these: `digests` (of tables),
  `row_forms` (of rows)
- `hidden_characters`: escapes for invisible and terminal control characters
"""
