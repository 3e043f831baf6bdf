"""Evaluation: how well the line finds documents judged relevant, next to baselines.

- `collections`: judged queries, in the `layouts` of folders; `evaluate`: all judged queries in one run; `roles`: role
  overlays on their golden sets
- `measuring`: the tables of a run as `rankings` of each lane, their fusion, the line, also without a score term, and
  its block, and the documents found per lane; `baselines`: rankings of other systems, and their chunks filled to a
  budget
- `frozen_terms`: score terms as arrays; `tuning`: weights fitted to them, and measured on held-out queries;
  `reweighing`: weights changed by hand, with sliders in a notebook; `synthetic`: judged requests without judges;
  `run_quality`: for the report of a run
- `judgements`: files of judgements and rankings; `lost_gold`: where judged rows were lost, also as a picture
- `metrics`: by their `ir_measures` names; `significance`: tests and intervals; `report`: the figures together
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reweighing import Reweighing
    from .synthetic import commit_questions, known_items

__all__ = ["Reweighing", "commit_questions", "known_items"]

_HOMES = {"Reweighing": "reweighing", "commit_questions": "synthetic", "known_items": "synthetic"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
