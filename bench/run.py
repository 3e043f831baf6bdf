"""`make bench`: every row of the table, part by part, each in a process of its own; a part that fails is named and passed.

Run: `python bench/run.py [--chunks N] [--parts lexical ...] [--rounds N] [--quick] [--record] [--fresh]`.
What a part has measured stays in the work folder under the commit it was measured at: the same command goes on where it
was interrupted. `--record` appends the rows to `data/results/bench.jsonl`; `bench_page.py` makes the page from there.
What it does not show is at the top of `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench_records import RESULTS, ROOT, append, environment, peak_mib, record
from bench_table import print_table
from options import Options
from parts import PARTS, Part
from rich.console import Console

WORK = ROOT / ".bench"
DEFAULT = [part.name for part in PARTS.values() if part.by_default]


def main() -> int:
    options, asked = read_arguments()
    if asked.only:
        return measure(PARTS[asked.only], options, asked.into, asked.command)
    console = Console(width=None if sys.stdout.isatty() else 150)
    options.work.mkdir(parents=True, exist_ok=True)
    started, failed, records = time.perf_counter(), [], []
    state = state_of(options)
    for name in asked.parts:
        into = options.work / f"rows-{state}-{name}.jsonl"
        if asked.fresh or not finished(into):
            console.print(f"[bold]{name}[/bold]: {PARTS[name].what}", highlight=False)
            failed += [name] if run_part(PARTS[name], options, into, asked.command) else []
        else:
            console.print(f"[bold]{name}[/bold]: measured before at this commit, see --fresh", highlight=False)
        new = rows_in(into)
        records += new
        print_table(new, console)
        console.print()
    console.rule("all rows")
    print_table(records, console)
    console.print(f"{time.perf_counter() - started:.0f} s in all")
    for name in failed:
        console.print(f"[red]failed[/red]: {name}; {why(options.work / f'{name}.log')}", highlight=False)
    if asked.record:
        append(records)
        console.print(f"{len(records)} rows recorded in {RESULTS.relative_to(ROOT)}; now `make bench-page`")
    return 1 if failed else 0


def read_arguments(given: Sequence[str] | None = None) -> tuple[Options, argparse.Namespace]:
    """The options of the parts, and what the runner alone needs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=Options.chunks, help="rows of the corpus; default: %(default)s")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=list(PARTS),
        default=DEFAULT,
        metavar="PART",
        help=f"any of {', '.join(PARTS)}; default: {' '.join(DEFAULT)}",
    )
    parser.add_argument(
        "--rounds", type=int, default=Options.rounds, help="times that each is timed; default: %(default)s"
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the queries: to see that everything works")
    parser.add_argument("--record", action="store_true", help=f"append to {RESULTS.relative_to(ROOT)}")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured at this commit")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for corpora and what was measured")
    parser.add_argument("--only", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--command", help=argparse.SUPPRESS)
    asked = parser.parse_args(given)
    data = os.environ.get("SCOPED_RETRIEVAL_EVAL_DATA")
    options = Options(asked.work.resolve(), asked.chunks, asked.rounds, asked.quick, Path(data) if data else None)
    asked.command = asked.command or command_of(options, asked.parts)
    return options, asked


def command_of(options: Options, parts: Sequence[str]) -> str:
    """The command as another user would give it: options other than defaults, and no path of this machine."""
    words = ["python bench/run.py"]
    words += [f"--chunks {options.chunks}"] if options.chunks != Options.chunks else []
    words += [f"--parts {' '.join(parts)}"] if list(parts) != DEFAULT else []
    words += [f"--rounds {options.rounds}"] if options.rounds != Options.rounds else []
    return " ".join([*words, *(["--quick"] if options.quick else [])])


def run_part(part: Part, options: Options, into: Path, command: str) -> bool:
    """Measure one part in a process of its own; whether it failed. What it printed goes to `PART.log`."""
    into.unlink(missing_ok=True)
    words = [sys.executable, __file__, "--only", part.name, "--into", str(into), "--command", command]
    words += ["--chunks", str(options.chunks), "--rounds", str(options.rounds), "--work", str(options.work)]
    words += ["--quick"] if options.quick else []
    limit = 60 * part.minutes * max(1.0, options.chunks / 100_000)
    with (options.work / f"{part.name}.log").open("w") as log:
        try:
            return subprocess.run(words, stdout=log, stderr=log, timeout=limit, check=False).returncode != 0
        except subprocess.TimeoutExpired:
            log.write(f"\nExpected an end within {limit:.0f} s\n")
            return True


def why(log: Path) -> str:
    """Why a part failed, as far as a line can say it: the package that it lacks, or the place of its output."""
    missing = re.findall(
        r"^ModuleNotFoundError: No module named '([^']+)'$", log.read_text(encoding="utf-8"), re.MULTILINE
    )
    return f"no package {missing[-1]} is installed here: use `make bench`" if missing else f"its output stands in {log}"


def measure(part: Part, options: Options, into: Path, command: str) -> int:
    """The rows of one part, each written as soon as it is known, and a line that says that all are there."""
    started = time.perf_counter()
    with into.open("w", encoding="utf-8") as out:
        for row in part.rows(options):
            out.write(json.dumps(record(row, environment(command), peak_mib())) + "\n")
            out.flush()
        out.write(json.dumps({"finished": part.name, "seconds": round(time.perf_counter() - started, 1)}) + "\n")
    return 0


def state_of(options: Options) -> str:
    """What rows hold for: commit, corpus size, rounds. With uncommitted changes nothing holds for long."""
    commit = environment("")["commit"] or "unknown+"
    changes = f"-{int(time.time())}" if commit.endswith("+") else ""
    return f"{commit}{changes}-{options.chunks}-{options.rounds}{'-quick' if options.quick else ''}"


def finished(into: Path) -> bool:
    """Whether a part came to its end."""
    return into.exists() and any("finished" in one for one in lines_of(into))


def rows_in(into: Path) -> list[Mapping[str, Any]]:
    """The records that a part wrote."""
    return [one for one in lines_of(into) if "row" in one] if into.exists() else []


def lines_of(into: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in into.read_text(encoding="utf-8").splitlines() if line.endswith("}")]


if __name__ == "__main__":
    sys.exit(main())
