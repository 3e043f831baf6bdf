"""A slider per score term of a `Reweighing`, with its figures beside them, in a notebook.

Reads: a `Reweighing`. Gives: `Sliders`; with ipywidgets (extra `notebook`) they move, and every move measures again.
Where no widget can be shown, as on a page of a repository host, the figures are HTML.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...nodes.errors import InputError
from ..requests.converters import weight as request_weight
from .reweighing import CHANGED, Reweighing

__all__ = ["Sliders"]

LISTED = 8
_BINS = 20
_DIGITS = 6
"""Decimals of a weight."""
_WIDGET = "application/vnd.jupyter.widget-view+json"


class Sliders:
    """Weights that can be moved. `weights` are those of now, `figures` and `deltas` what they do."""

    def __init__(self, reweighing: Reweighing) -> None:
        self.reweighing = reweighing
        self.weights = dict(reweighing.weights)
        self.controls: dict[str, Any] = {}
        """An ipywidgets slider per term; empty without ipywidgets."""
        self._panel = self._shown = None
        self._setting = False
        self._measured()

    def move(self, **weights: float) -> Sliders:
        """Set weights by the names of their terms, as moving the sliders does; a slider grows to a weight beyond its end.

        Raises:
            InputError: there is no slider of that name, or the weight is not one that a request may name.
        """
        for term in weights:
            if term not in self.weights:
                raise InputError.one_of(tuple(self.weights), term, "weights")
        checked = {term: round(request_weight(value, f"weights.{term}"), _DIGITS) for term, value in weights.items()}
        self.weights |= checked
        self._setting = True
        try:
            for term, control in self.controls.items():
                control.max = max(control.max, self.weights[term])
                control.value = self.weights[term]
        finally:
            self._setting = False
        self._measured()
        return self

    def save(self, path: str | Path) -> Path:
        """Write the weights of now as a weight file."""
        return self.reweighing.save(path, self.weights)

    def html(self) -> str:
        """The figures of now, without a slider."""
        weights = ", ".join(f"{term} {weight:g}" for term, weight in self.weights.items())
        head = f"<p>{self.reweighing.requests:,} requests, purpose {_safe(self.reweighing.purpose)}. Weights: {_safe(weights)}</p>"
        moved = self.deltas[self.deltas["delta"] != 0].head(LISTED).round(4)
        most = f"<details><summary>Requests that change most</summary>{_table(moved)}</details>" if len(moved) else ""
        return f"{head}{_table(self.figures.round(4))}{_histogram(self.deltas['delta'])}{most}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": self.figures.round(4).to_string(), "text/html": self.html()}
        panel = self._widgets()
        shown = panel._repr_mimebundle_() if panel is not None else {}
        return {**bundle, _WIDGET: shown[_WIDGET]} if _WIDGET in shown else bundle

    def _measured(self) -> None:
        changed = {t: w for t, w in self.weights.items() if w != self.reweighing.weights[t]}
        self.figures = self.reweighing.figures(changed)
        self.deltas = self.reweighing.deltas(changed)
        if self._shown is not None:
            self._shown.value = self.html()

    def _widgets(self) -> Any:
        """The panel, made once; None without ipywidgets."""
        if self._panel is not None:
            return self._panel
        try:
            import ipywidgets
        except ImportError:
            return None
        self._shown = ipywidgets.HTML(self.html())
        for term, weight in self.weights.items():
            self.controls[term] = ipywidgets.FloatSlider(
                value=weight, min=0.0, max=max(1.0, weight), step=0.01, description=term, continuous_update=False,
                style={"description_width": "10em"},
            )  # fmt: skip
            self.controls[term].observe(self._moved, names="value")
        self._panel = ipywidgets.VBox([*self.controls.values(), self._shown])
        return self._panel

    def _moved(self, change: Any) -> None:
        if self._setting:  # `move` measures once, when all are set
            return
        self.weights = {term: round(control.value, _DIGITS) for term, control in self.controls.items()}
        self._measured()


def _safe(text: object) -> str:
    return html.escape(str(text))


def _table(frame: pd.DataFrame) -> str:
    head = "".join(f'<th scope="col">{_safe(name)}</th>' for name in (frame.index.name or "", *frame.columns))
    rows = "".join(
        f'<tr><th scope="row">{_safe(name)}</th>{"".join(f"<td>{_cell(value)}</td>" for value in values)}</tr>'
        for name, values in zip(frame.index, frame.itertuples(index=False), strict=True)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "-" if np.isnan(value) else f"{value:.4g}"
    return _safe(value)


def _histogram(deltas: pd.Series) -> str:
    """How many requests gain or lose how much, as bars; those that stay are left out."""
    changed = deltas[deltas != 0].to_numpy(dtype=np.float64)
    if not len(changed):
        return "<p>No request changes.</p>"
    counts, edges = np.histogram(changed, bins=_BINS, range=(-1.0, 1.0))
    width, height, most = 18, 90, counts.max()
    bars = "".join(
        f'<rect x="{n * width}" y="{height - round(height * int(count) / most, 2):g}" width="{width - 2}" '
        f'height="{round(height * int(count) / most, 2):g}" fill="{"#3f8f54" if edge >= 0 else "#c0504d"}">'
        f"<title>{int(count)} requests, delta {edge:.1f} to {edge + 2 / _BINS:.1f}</title></rect>"
        for n, (count, edge) in enumerate(zip(counts, np.round(edges[:-1], 6), strict=True))
    )
    said = f"{int((changed > 0).sum())} requests gain, {int((changed < 0).sum())} lose ({CHANGED} less as run, from -1 to 1)"
    size = f'viewBox="0 0 {_BINS * width} {height + 1}" width="{_BINS * width}" height="{height + 1}"'
    return (
        f'<svg {size} role="img" aria-label="{said}">{bars}<line x1="0" x2="{_BINS * width}" y1="{height}" y2="{height}" '
        f'stroke="#888"/></svg><p>{said}</p>'
    )
