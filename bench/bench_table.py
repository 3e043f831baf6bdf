"""The table of the bench on a terminal: one line per row, the aim beside the figure, and whether it was met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


def figure(value: float | None) -> str:
    """A number as people read it: three digits, thousands apart."""
    if value is None:
        return ""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"


def verdict(met: bool | None) -> str:
    """In words."""
    return {True: "met", False: "missed", None: ""}[met]


def figures_of(record: Mapping[str, Any]) -> str:
    """What the aim speaks of, with its unit: `5.2x the fastest`, `12 ms`."""
    unit = record["value_unit"]
    return f"{figure(record['value'])}{'' if unit.startswith('x ') else ' '}{unit}"


def print_table(records: Iterable[Mapping[str, Any]], console: Console) -> None:
    """All rows, by part in the order given, with the environment below."""
    records = list(records)
    if not records:
        console.print("no rows")
        return
    table = Table(show_edge=False, pad_edge=False)
    for heading, justify in (
        ("what", "left"), ("ours", "right"), ("per scope", "right"), ("peers", "left"), ("figure", "right"),
        ("aim", "left"), ("", "left"),
    ):  # fmt: skip
        table.add_column(heading, justify=justify, overflow="fold")
    part = None
    for one in records:
        if part not in (None, one["part"]):
            table.add_section()
        part = one["part"]
        peers = "\n".join(f"{name} {figure(value)}" for name, value in one["systems"].items())
        precompute = "" if one["precompute_seconds"] is None else f"{figure(1_000 * one['precompute_seconds'])} ms"
        color = {True: "green", False: "red", None: ""}[one["met"]]
        table.add_row(
            f"{one['what']}\n[dim]{figure(one['chunks'])} chunks[/dim]" if one["chunks"] else one["what"],
            f"{figure(one['ours'])} {one['unit']}", precompute, peers, figures_of(one), one["aim"],
            f"[{color}]{verdict(one['met'])}[/{color}]" if color else verdict(one["met"]),
        )  # fmt: skip
    console.print(table)
    if records:
        last = records[-1]
        versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
        loads = [one["load"] for one in records]
        console.print(
            f"\n{last['cores']} cores, load {min(loads)} to {max(loads)}, Python {last['python']}, {versions}"
        )
        console.print(
            f"commit {last['commit']}, peak resident {max(one['peak_mib'] for one in records):,} MiB in a part"
        )
