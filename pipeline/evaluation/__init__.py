"""Evaluation: how well the line finds documents judged relevant.

- `collections`: judged queries of a folder; `synthetic`: judged requests without judges
- `asking`: all judged queries in one run; `evaluate`: its tables as rankings of each lane, their fusion, the line, and its
  block; `metrics`: by their `ir_measures` names, with tests and intervals
- `frozen_terms`: score terms ranked again under other weights, also by hand in a notebook; `tuning`: weights fitted to
  them, and measured on held-out queries
- `roles`: role overlays on their golden sets
"""
