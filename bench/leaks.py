"""`leak-test` over a collection of conversations in which every user is a tenant, principal of a project of their own.

Run: `python bench/leaks.py COLLECTION [--angle A] [--canaries N] [--probes N] [--semantic]`, COLLECTION a folder in
the uniform layout. Prints one JSON record with counts and seconds; `--record` appends it to `data/results/leaktest.jsonl`.
What it does not show: other grants than one project each, shared projects, denials. The tests have those.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from scoped_retrieval.nodes.lanes import LANE_NAMES
from scoped_retrieval.nodes.walls.gate import ANGLES
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.encoders.encoder import load_encoder
from scoped_retrieval.pipeline.evaluation.collections import Collection, open_collection
from scoped_retrieval.pipeline.leaktest import leak_test
from scoped_retrieval.pipeline.sources.importing import normalize

RESULTS = Path(__file__).parents[1] / "data" / "results" / "leaktest.jsonl"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--angle", action="append", choices=ANGLES, help="only this angle, or these")
    parser.add_argument("--canaries", type=int, default=None, help="about so many per tenant and angle")
    parser.add_argument("--probes", type=int, default=1)
    parser.add_argument("--semantic", action="store_true", help="with vectors and the semantic lane")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    collection = open_collection(options.collection)
    lanes = [lane for lane in LANE_NAMES if lane != "semantic" or options.semantic]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as work:
        rows = index(collection, Path(work), semantic=options.semantic)
        indexed = time.perf_counter()
        flags = {"corpus": Path(work) / "corpus", "grants": Path(work) / "grants.yaml", "lanes": lanes}
        settings = load_settings(flags, cwd=Path(work), environ={}, user=Path(work) / "none.toml")
        angles = options.angle or ANGLES
        report = leak_test(
            settings,
            probes=options.probes,
            canaries=options.canaries,
            angles=angles,
            say=lambda line: print(line, file=sys.stderr),
        )
    record = {
        "collection": collection.name,
        "rows": rows,
        "users": len(collection.projects()),
        "angles": list(angles),
        "lanes": lanes,
        **{name: value for name, value in report.as_dict().items() if not isinstance(value, (list, dict))},
        "roles": len(report.roles),
        "gates": len(report.gates),
        "leaks": len(report.leaks),
        "skipped": len(report.skipped),
        "index_seconds": round(indexed - started, 1),
        "seconds": round(time.perf_counter() - indexed, 1),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "commit": subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        ).stdout.strip(),
        "at": datetime.now(UTC).date().isoformat(),
        "command": command(),
    }
    print(json.dumps(record, indent=2))
    print("\n".join([*report.skipped[:20], *(str(leak) for leak in report.leaks[:20])]), file=sys.stderr)
    if options.record:
        with RESULTS.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record, sort_keys=True) + "\n")
    return 0 if report.ok else 5


def index(collection: Collection, work: Path, *, semantic: bool) -> int:
    """A corpus below `work` in which every user owns their rows, and grants of one project to each."""
    now = datetime.now(UTC)
    owned = [rows.append_column("owner_user", rows["owner_project"]) for rows in collection.rows()]
    tables = [normalize(rows, project=collection.name, principal=collection.name, now=now)[0] for rows in owned]
    table = pa.concat_tables(tables)
    encoder = load_encoder() if semantic else None
    Corpus.create(work / "corpus").publish(table, now=now, encoder=encoder)
    people: dict[str, Any] = {name: {"projects": [name]} for name in collection.projects()}
    (work / "grants.yaml").write_text(yaml.safe_dump({"principals": people}), encoding="utf-8")
    return table.num_rows


def command() -> str:
    """The command as another user would give it: no path of this machine."""
    words = [Path(word).name if os.sep in word else word for word in sys.argv[1:] if word != "--record"]
    return f"python bench/leaks.py {' '.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
