"""`docs/benchmarks.md` and its curves, made from the recorded rows alone: no figure on the page was typed.

Run: `python bench/bench_page.py`. The newest record of each row and corpus size counts. Curves need matplotlib.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench_limits import limits_of
from bench_records import RESULTS, ROOT, latest
from bench_table import figure, figures_of, verdict
from parts import PARTS

PAGE = ROOT / "docs" / "benchmarks.md"
CURVES = ROOT / "docs" / "benchmarks.svg"

INTRODUCTION = """\
# Benchmarks

## What this page does not show

- Other machines: every row was measured on one machine, described below with its cores and its load. Ratios within a run
  are more portable than absolute figures.
- Your texts: the large corpora consist of synthetic words under a Zipf law, so that their size can be chosen. They have no
  topics and few long texts, and no user asked their questions. Vectors of the dense rows are also synthetic. Only quality
  and embedding use texts written by people.
- Peers at their best elsewhere: they run as documented, in one process on this machine, with the settings
  below. An approximate index, a server, an accelerator or a tuned cluster would be another comparison.
- The same work: peers return row numbers. Over a part of the corpus, bm25s, tantivy and LanceDB score with statistics of
  all rows; ours are those of the rows in scope, which costs time but leaks nothing. Whole lines also write snapshots.
- Slow disks, cold page caches, other operating systems, concurrent users.
- Features of peers that this project lacks: phrase queries, fuzzy terms, approximate vectors, deletes in place.

## How it was measured

All systems of a row take turns in rounds. The order rotates by one each round, and each round has queries that no system
has seen before; the median of the rounds counts. "Asked" is the number of rounds and of queries per round: a slow peer
answers fewer of the same queries. Every system gets both cores if it can use them, its batch call if it has one, the same
terms and the same top k. Filters are built off the clock. So is what we compute once per scope, which has its own column.
If a peer computes the same thing, results are compared before anything is timed, up to ties; a difference fails the part.
Targets such as "at most 50 ms" refer to this machine.

The cost of a change is measured differently: two checkouts take turns, and CPU seconds count, with
`python bench/alternate.py OTHER`.

`make bench` runs the first of these commands in its own venv. The rows below were recorded by:

```
{commands}
make bench-page  # this page, from data/results/bench.jsonl
```
"""


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """The page as Markdown."""
    shown = [one for one in records if one["part"] in PARTS]
    commands = dict.fromkeys(f"{one['command']} --record" for one in shown)
    parts = [INTRODUCTION.format(commands="\n".join(commands or ["python bench/run.py --record"]))]
    if not shown:
        return f"{parts[0]}\n## Figures\n\nNo run is recorded yet.\n"
    parts.append(environment_of(shown))
    for part in PARTS.values():
        rows = [one for one in shown if one["part"] == part.name]
        if rows:
            parts.append(f"## {part.what[0].upper()}{part.what[1:]}\n\n{table_of(rows)}")
    if curves_in(shown):
        parts.append(f"## Curves\n\n![How cost moves with size, scope, batch and workers]({CURVES.name})\n")
    parts += [part for part in (limits_of(shown), settings_of(shown)) if part]
    return "\n".join(parts)


def environment_of(records: Iterable[Mapping[str, Any]]) -> str:
    """When, where and with what."""
    records = list(records)
    days = sorted({one["at"][:10] for one in records})
    loads = [one["load"] for one in records]
    commits = sorted({one["commit"] for one in records})
    versions = {name: version for one in records for name, version in one["versions"].items()}
    lines = [
        "## Figures\n",
        f"Measured {' to '.join(dict.fromkeys([days[0], days[-1]]))} at commit {', '.join(commits)}, "
        f"{records[-1]['cores']} cores, Python {records[-1]['python']}. Load while measuring: {figure(min(loads))} to "
        f"{figure(max(loads))}; above the number of cores, the machine was shared with others. Peak resident memory of a "
        f"part: {figure(max(one['peak_mib'] for one in records))} MiB.\n",
        f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.\n",
    ]
    missed = [one for one in records if one["met"] is False]
    met = [one for one in records if one["met"]]
    lines.append(f"{len(met)} aims met, {len(missed)} missed.\n")
    return "\n".join(lines)


def table_of(records: Iterable[Mapping[str, Any]]) -> str:
    """One part as a table."""
    lines = [
        "| what | chunks | asked | ours | once per scope | peers | figure | aim | |",
        "| --- | ---: | --- | ---: | ---: | --- | ---: | --- | --- |",
    ]
    for one in records:
        precompute = one["precompute_seconds"]
        cells = [
            one["what"],
            figure(one["chunks"]),
            _asked(one),
            f"{figure(one['ours'])} {one['unit']}{_range(one, 'ours')}",
            "" if precompute is None else f"{figure(1_000 * precompute)} ms",
            "<br>".join(f"{name} {figure(value)}{_range(one, name)}" for name, value in one["systems"].items()),
            figures_of(one),
            one["aim"],
            verdict(one["met"]),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _asked(record: Mapping[str, Any]) -> str:
    """Rounds and queries, with those of systems that answer others: `5 x 1,000, peer 20`."""
    rounds, queries = record["rounds"], record["queries"]
    if not queries:
        return f"{rounds} x" if rounds else ""
    usual = max(queries.values())
    others = (f", {name} {figure(count)}" for name, count in queries.items() if count != usual)
    return f"{f'{rounds} x ' if rounds else ''}{figure(usual)}{''.join(others)}"


def _range(record: Mapping[str, Any], name: str) -> str:
    """Slowest and fastest round in brackets."""
    spread = record["spread"].get(name)
    return f" ({figure(spread[0])} to {figure(spread[1])})" if spread else ""


def settings_of(records: Iterable[Mapping[str, Any]]) -> str:
    """Every setting that a system ran with, by part, and the notes of rows."""
    lines = ["## Settings\n", "| part | system | settings |", "| --- | --- | --- |"]
    known: dict[tuple[str, str, str], None] = {}
    for one in records:
        known |= {(one["part"], name, words): None for name, words in one["settings"].items() if words}
    lines += [f"| {part} | {name} | {words} |" for part, name, words in known]
    notes = dict.fromkeys(f"- {one['what']}: {one['notes']}." for one in records if one["notes"])
    return "\n".join([*lines, *(["", "Notes:\n", *notes] if notes else [])]) + "\n"


def curves_in(records: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The rows that keep a curve, by row."""
    return {one["row"]: one for one in records if one["extra"].get("curve")}


def main() -> int:
    records = latest(RESULTS)
    PAGE.write_text(page(records), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    curves = curves_in(records)
    if curves:
        from bench_curves import draw

        draw(curves, CURVES)
        print(f"wrote {CURVES.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
