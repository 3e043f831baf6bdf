"""Public transcripts of two coding agents, as a bench takes them: a list of addresses, and the check of a folder of files.

    python bench/transcripts.py FOLDER

Nothing is fetched: put the files of `transcripts.tsv` into a folder under any name, for example with
`git show COMMIT:PATH > FOLDER/NAME.jsonl` in a clone of each repository. A file is known by its SHA-256.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from pathlib import Path

LISTED = Path(__file__).with_name("transcripts.tsv")


def listed() -> list[dict[str, str]]:
    """The rows of the list: repository, commit, path, sha256, harness, records."""
    with LISTED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def found_in(folder: Path) -> dict[str, Path]:
    """The files of a folder that are on the list, by their SHA-256, in the order of the list."""
    files = {hashlib.sha256(path.read_bytes()).hexdigest(): path for path in sorted(folder.rglob("*.jsonl"))}
    return {row["sha256"]: files[row["sha256"]] for row in listed() if row["sha256"] in files}


def main() -> int:
    found = found_in(Path(sys.argv[1]))
    for row in listed():
        place = found.get(row["sha256"], "missing")
        print(f"{place}\t{row['harness']}\t{row['records']}\t{row['repository']}@{row['commit'][:12]}:{row['path']}")
    return int(len(found) < len(listed()))


if __name__ == "__main__":
    sys.exit(main())
