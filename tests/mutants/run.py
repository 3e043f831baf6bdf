"""Change the code in one place after another and see whether its tests notice: `make mutants`, `tests/mutants/RESULTS.md`.

Mutants are made by Cosmic Ray in this working tree, which has to be as committed; each is undone after its tests. Of every
part a sample is drawn, the same for the same seed, since all mutants would take days. `--suite` and `--sample` choose
others, `--record` writes the page.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "tests/mutants/RESULTS.md"
SEED = 7
EXCLUDED = (
    "core/AddNot",
    "core/NumberReplacer",
    "core/ReplaceBinaryOperator_BitAnd_Mul",
    "core/ReplaceBinaryOperator_BitOr_Add",
)
"""The first two would be half of all mutants; the others are the same operation on Boolean arrays."""


@dataclass(frozen=True)
class Suite:
    """A part of the code, and the tests that have to notice."""

    name: str
    code: tuple[str, ...]
    tests: tuple[str, ...]


SUITES = (
    Suite(
        "walls",
        ("nodes/walls", "nodes/boundary_gates.py", "nodes/boundary_filtering.py", "nodes/scope/selectors.py"),
        (
            "tests/test_second_wall.py",
            "tests/test_boundary_gates.py",
            "tests/test_boundary_filtering.py",
            "tests/test_time_gates.py",
            "tests/test_selectors.py",
            "tests/test_source_names.py",
            "tests/test_out_of_scope.py",
            "tests/test_boundary_gates_properties.py",
        ),
    ),
    Suite("trimming", ("nodes/budget_trimming.py", "nodes/blocks/greedy_fit.py"), ("tests/test_budget_trimming.py", "tests/test_evidence_packing.py", "tests/test_fact_conflicts.py")),
    Suite("audit", ("nodes/audit", "nodes/audit_snapshot.py"), ("tests/test_audit_snapshot.py", "tests/test_evidence_packing.py", "tests/test_why.py", "tests/test_digests.py", "tests/test_silent_encoder.py", "tests/test_document_004_words.py")),
    Suite("grants", ("pipeline/config/grants.py", "nodes/scope_resolution.py", "nodes/scope/active_grants.py"), ("tests/test_grants.py", "tests/test_active_grants.py", "tests/test_contract_narrowing.py", "tests/test_scope_resolution.py", "tests/test_contracts.py")),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: its place, what it changed, and whether a test noticed."""

    place: str
    change: str
    noticed: bool


def tried(suite: Suite, sample: int) -> list[Mutant]:
    """A sample of the mutants of a part, each with its tests."""
    from cosmic_ray.work_db import WorkDB, use_db

    with tempfile.TemporaryDirectory() as folder:
        config, session = Path(folder) / "config.toml", Path(folder) / "session.sqlite"
        command = f"{sys.executable} -m pytest -x -q -n 0 -p no:cacheprovider {' '.join(suite.tests)}"
        config.write_text(
            "[cosmic-ray]\n"
            f"module-path = {json.dumps(list(suite.code))}\n"
            "timeout = 120.0\nexcluded-modules = []\n"
            f"test-command = {json.dumps(command)}\n"
            '[cosmic-ray.distributor]\nname = "local"\n'
        )
        cosmic_ray("init", str(config), str(session))
        with use_db(str(session), mode=WorkDB.Mode.open) as made:
            items = [item for item in made.work_items if counts(item.mutations[0])]
            drawn = random.Random(SEED).sample(items, min(sample, len(items)))
            made.clear()
            made.add_work_items(drawn)
        cosmic_ray("exec", str(config), str(session))
        with use_db(str(session), mode=WorkDB.Mode.open) as made:
            results = dict(made.results)
            return [
                Mutant(
                    f"{change.module_path}:{change.start_pos[0]}",
                    change.operator_name.removeprefix("core/"),
                    results[item.job_id].test_outcome is not None
                    and str(results[item.job_id].test_outcome) != "TestOutcome.SURVIVED",
                )
                for item in drawn
                for change in item.mutations[:1]
            ]


def counts(change: MutationSpec) -> bool:
    """Whether a mutant can be noticed at all: an annotation is never evaluated."""
    if change.operator_name.startswith(EXCLUDED):
        return False
    return not any(
        first <= change.start_pos and change.end_pos <= last for first, last in annotations(change.module_path)
    )


@cache
def annotations(module: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the annotations of a module begin and end, as line and column."""
    nodes = ast.walk(ast.parse((ROOT / module).read_text()))
    marked = (getattr(node, name, None) for node in nodes for name in ("annotation", "returns"))
    return [((one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)) for one in marked if one is not None]


def cosmic_ray(*arguments: str) -> None:
    """Run a command of Cosmic Ray in the working tree."""
    subprocess.run([sys.executable, "-m", "cosmic_ray.cli", *arguments], cwd=ROOT, check=True)


def page(found: dict[str, list[Mutant]]) -> str:
    """The page that records the score, with every mutant that no test noticed."""
    rows = [f"| {name} | {sum(m.noticed for m in of)} | {len(of)} | {share(of)} |" for name, of in found.items()]
    everything = [mutant for of in found.values() for mutant in of]
    left = [f"- `{m.place}` {m.change}" for m in everything if not m.noticed]
    return "\n".join(
        [
            "# Mutants",
            "",
            "`make mutants` makes one change to the code at a time and runs the tests of that part. A mutant that no test notices",
            f"is a place where a fault could hide, or a change without effect. The table is for a sample (seed {SEED}) of Cosmic Ray's mutants:",
            "",
            "| part | noticed | tried | share |",
            "| --- | --- | --- | --- |",
            *rows,
            f"| all | {sum(m.noticed for m in everything)} | {len(everything)} | {share(everything)} |",
            "",
            "Not noticed:",
            "",
            *left,
            "",
        ]
    )


def share(of: list[Mutant]) -> str:
    return f"{sum(m.noticed for m in of) / max(len(of), 1):.0%}"


def main() -> int:
    """Try the mutants; exit 1 if the working tree is not as committed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="append", choices=[suite.name for suite in SUITES])
    parser.add_argument("--sample", type=int, default=40, help="mutants of each part")
    parser.add_argument("--record", action="store_true", help="write tests/mutants/RESULTS.md")
    chosen = parser.parse_args()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, check=True, capture_output=True, text=True)
    if status.stdout.strip():
        print(
            "Expected a working tree as committed, got changes: mutants are made in it. Commit or stash them.",
            file=sys.stderr,
        )
        return 1
    suites = [suite for suite in SUITES if chosen.suite is None or suite.name in chosen.suite]
    found = {suite.name: tried(suite, chosen.sample) for suite in suites}
    text = page(found)
    print(text)
    if chosen.record:
        PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
