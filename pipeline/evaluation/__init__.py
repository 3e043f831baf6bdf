"""Evaluation: how well the line finds documents judged relevant, next to baselines.

- `collections`: judged queries, in the files of `layouts` and `judgements`; `synthetic`: judged requests without judges
- `evaluate`: all judged queries in one run; `rankings`: its tables as rankings of each lane, their fusion, the line,
  also without a score term, and its block; `metrics`: by their `ir_measures` names; `significance`: tests and
  intervals; `report`: the figures together
- `frozen_terms`: score terms ranked again under other weights; `tuning`: weights fitted to them, and measured on
  held-out queries; `commit_tuning`: the same from a repository's history; `reweighing`: weights changed by hand, with sliders in a notebook
- `lost_gold`: where judged rows were lost; `roles`: role overlays on their golden sets
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
