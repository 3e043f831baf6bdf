"""Evaluation: how well the line finds documents judged relevant.

- `collections`: judged queries, in the files of `layouts`; `synthetic`: judged requests without judges
- `evaluate`: all judged queries in one run; `rankings`: its tables as rankings of each lane, their fusion, the line,
  and its block; `metrics`: by their `ir_measures` names; `significance`: tests and intervals; `report`: the figures
- `frozen_terms`: score terms ranked again under other weights, also by hand in a notebook; `tuning`: weights fitted to
  them, and measured on held-out queries; `commit_tuning`: the same from a repository's history
- `roles`: role overlays on their golden sets
"""
