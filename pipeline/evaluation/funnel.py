"""Where judged documents were lost, as a picture: a bar per stage in a part per reason, and the reasons behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from .lost_gold import STAGES, LostGold

FORMATS = (".svg", ".png")
_WORDS = {
    "request": "request denied or failed", "corpus": "not in the corpus", "unseen": "not disclosed to you",
    "gate": "stopped by a gate", "recall": "recalled by no lane", "merge": "cut when lanes were merged",
    "select": "outranked", "pack": "dropped while packing", "trim": "trimmed", "cite": "without a citation", "shown": "shown",
}  # fmt: skip


def draw_funnel(lost: LostGold, path: Path) -> None:
    """Write the picture; its format follows from the name. The same figures give the same bytes of SVG.

    Raises:
        InputError: matplotlib is missing, the name ends otherwise, or the file cannot be written.
    """
    if path.suffix not in FORMATS:
        raise InputError.one_of(FORMATS, path.suffix, "--picture")
    matplotlib = _matplotlib()
    table = lost.stages()
    stages = [stage for stage in STAGES if stage in set(table["stage"])]
    figure, axes = matplotlib.figure.Figure(figsize=(9, 0.5 * len(stages) + 1.4), layout="constrained"), None
    axes = figure.subplots()
    for place, stage in enumerate(stages):
        left, of_stage = 0, table[table["stage"] == stage].to_dict("records")
        for n, row in enumerate(of_stage):
            color = "#2a7f62" if stage == "shown" else matplotlib.colormaps["tab20c"](4 + n % 8)
            axes.barh(place, row["gold"], left=left, color=color, edgecolor="white")
            left += row["gold"]
        # Behind the bar, where words have room: inside it they ran over the next part.
        told = [row["reason"] if len(of_stage) == 1 else f"{row['reason']} {row['gold']}" for row in of_stage]
        words = f" {left}" if stage == "shown" else f" {left}  {', '.join(told)}"
        axes.text(left, place, words, ha="left", va="center", fontsize=8)
    axes.set_yticks(range(len(stages)), [_WORDS[stage] for stage in stages])
    axes.invert_yaxis()
    axes.set_xlabel(f"judged documents, {len(lost.gold)} together")
    axes.set_title(f"Where relevant documents were lost: {lost.run_id}", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    try:
        with matplotlib.rc_context({"svg.hashsalt": "funnel"}):
            figure.savefig(path, metadata=metadata, bbox_inches="tight")
    except OSError as error:
        raise InputError(f"Expected a file to write to, got {error.strerror} - at --picture {path}") from error


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        hint = 'pip install "scoped-retrieval[eval]", or leave --picture out'
        raise InputError("Expected the package matplotlib, got none - at --picture", hint=hint) from error
    return matplotlib
