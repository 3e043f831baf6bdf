"""The command line `scoped-retrieval`: flags in, one call of the Python API, text or JSON out.

Importing this package loads nothing, running it Typer, and each command imports what it needs when it runs.

- commands: `corpus_commands`, `retrieval_commands`, `evaluation_commands`, `runs_commands`, `run_commands`, `contract_commands`,
  `view_commands`, `audit_commands`, `role_commands`, `safety_commands`, `context_commands`,
  `serving_commands`, `connect_commands`, `system_commands`, all in the `app`, which `__main__` starts
- `options`: flags of several commands; `flag_names`: errors in their words; `output`: JSON, text, exit codes; what is printed goes
  through the sanitizer of `views/printed.py`
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

__all__ = ["main"]

KEPT = 50_000
"""New objects after which the collector looks for garbage."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. The console script passes it to the shell.

    Without `argv`, the command is the process: nearly all of its objects are made by imports and stay until it ends, so
    the collector, which took an eighth of a cold `ask`, looks at them seldom, and not at the end.
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
