"""The scaling curves as one picture: corpus size at fixed scope, scope share, batch size, workers. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

COLORS = {"ours": "#0b5fa5", "bm25s": "#c2571a", "recall": "#0b5fa5", "whole line": "#3a8f5c"}


def draw(rows: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw the rows that are there; the same rows give the same bytes."""
    settings = {"svg.hashsalt": "bench", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
    with plt.rc_context(settings):
        figure, axes = plt.subplots(2, 2, figsize=(9.5, 7), layout="constrained")
        _growth(axes[0][0], rows)
        for place, row, title in (
            (axes[0][1], "scaling/share", "Lexical batch by share of the corpus in scope"),
            (axes[1][0], "scaling/batch", "Lexical recall, 1 % in scope, by batch"),
            (axes[1][1], "scaling/workers", "Whole line by workers"),
        ):
            _rates(place, rows.get(row), title)
        figure.savefig(path, format="svg", metadata={"Date": None})
        plt.close(figure)


def _growth(axes: Axes, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Cost relative to the smallest corpus: flat is the aim."""
    for row, name in (("growth/recall", "recall"), ("growth/line", "whole line")):
        if row in rows:
            curve = rows[row]["extra"]["curve"]
            axes.plot(curve["x"], [y / curve["y"][0] for y in curve["y"]], "o-", color=COLORS[name], label=name)
    axes.axhline(1.1, color="#888888", linewidth=0.8, linestyle="--", label="aim: at most 1.1")
    axes.set(title="Cost of a fixed scope of 1,000 rows", xlabel="other rows", ylabel="CPU time, smallest corpus = 1")
    axes.set(xscale="log", ylim=(0, 1.3))
    _plain(axes)


def _rates(axes: Axes, row: Mapping[str, Any] | None, title: str) -> None:
    """Throughput of every system."""
    axes.set(title=title)
    if row is None:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes)
        return
    curve = row["extra"]["curve"]
    for name, values in curve["y"].items():
        axes.plot(curve["x"], values, "o-", color=COLORS.get(name), label=name)
    axes.set(xlabel=curve["x_label"], ylabel=row["unit"], xscale="log")
    if row["row"] == "scaling/workers":
        axes.set(ylim=(0, 1.15 * max(max(values) for values in curve["y"].values())))
    else:
        axes.set(yscale="log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    _plain(axes)
    axes.set_xticks(curve["x"])
    axes.minorticks_off()


def _plain(axes: Axes) -> None:
    """Figures instead of powers of ten."""
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if len(axes.lines) > 1:
        axes.legend(frameon=False)
