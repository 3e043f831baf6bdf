"""Evaluation: how well the line finds documents judged relevant.

- `collections`: judged queries, in the files of `layouts`; `synthetic`: judged requests without judges
- `evaluate`: all judged queries in one run; `rankings`: its tables as rankings of each lane, their fusion, the line,
  also without a score term, and its block; `metrics`: by their `ir_measures` names; `significance`: tests and
  intervals; `report`: the figures together
- `frozen_terms`: score terms ranked again under other weights; `tuning`: weights fitted to them, and measured on
  held-out queries; `commit_tuning`: the same from a repository's history; `reweighing`: weights changed by hand, with sliders in a notebook
- `roles`: role overlays on their golden sets
"""
