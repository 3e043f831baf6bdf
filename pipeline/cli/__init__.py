"""The command line `scoped-retrieval`: flags in, one call of the Python API, text or JSON out.

Importing this package loads nothing, running it loads Typer, and each command imports its dependencies when it runs.

- commands: the modules named in `app`, which `__main__` starts
- `options`: those of every command, and flags of several; `output`: JSON, text, exit codes; printed
  text is sanitized by `views/printed.py`
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

__all__ = ["main"]

KEPT = 50_000
"""Allocations after which the garbage collector runs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. The console script passes it to the shell.

    Without `argv`, the command owns the process: nearly all objects are created by imports and live until it ends, so
    the garbage collector, which took an eighth of a cold `ask`, runs rarely and not at exit.
    """
    if argv is not None:
        return _run(argv)
    gc.set_threshold(KEPT, 20, 20)
    try:
        return _run(None)
    finally:
        gc.freeze()


def _run(argv: Sequence[str] | None) -> int:
    try:
        from .app import main as run
    except KeyboardInterrupt:
        import sys

        print("error: Interrupted", file=sys.stderr)
        return 130
    return run(argv)
