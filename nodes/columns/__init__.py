"""Operations on Arrow columns and NumPy arrays, used by every step.

- `keys`: look-ups by key, sorting rows, lists taken apart; `ragged`: groups and their ranges
- `digests`: the canonical form of rows, and identity from it
- `numbers`: sums that are exact in any order; `kept`: cached values
- `hidden_characters`: escapes for invisible and terminal control characters
"""
