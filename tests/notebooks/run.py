"""Execute each notebook, or those named, twice, and keep in it the outputs that both executions agree on: `make notebooks`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import nbformat
    from notebook_outputs import USER, agreed, executed

    os.environ["LOGNAME"] = USER
    for notebook in map(Path, sys.argv[1:] or sorted((ROOT / "notebooks").glob("*.ipynb"))):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            first, second = (executed(notebook, Path(folder)) for folder in (one, other))
        book = nbformat.read(notebook, as_version=4)
        for cell, *outputs in zip(book.cells, first.cells, second.cells, strict=True):
            if cell.cell_type == "code":
                cell.outputs = [nbformat.from_dict(one) for one in agreed(*(of.outputs for of in outputs))]
                cell.execution_count = None
        nbformat.write(book, notebook)
        print(f"{notebook.name}: {notebook.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
