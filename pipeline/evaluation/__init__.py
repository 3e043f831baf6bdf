"""Evaluation: how well the line finds what people judged relevant, beside what it is compared with.

- `collections`: what was judged, as `layouts` of folders hold it; `evaluate`: every judged query asked in one run; `roles`: role overlays on their golden sets
- `measuring`: the tables of a run as `rankings` of each lane, their fusion, the line, without a score term too, and its block, and which lane found what;
  `baselines`: rankings of others, and their chunks filled to a budget
- `frozen_terms`: score terms as arrays; `tuning`: weights fitted to them, and measured on what was left out;
  `reweighing`: other weights by hand, with sliders in a notebook; `synthetic`: judged requests without judges;
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
