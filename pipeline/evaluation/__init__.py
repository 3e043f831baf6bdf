"""Evaluation: how well the line finds what people judged relevant, beside what it is compared with.

- `collections`: what was judged; `evaluate`: every judged query asked in one run; `roles`: role overlays on their golden sets
- `rankings`: of each lane, their fusion and the line; `baselines`: of others; `metrics`: by their `ir_measures` names
"""
