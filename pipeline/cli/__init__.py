"""The command line `scoped-retrieval`: a thin door. Flags in, one call of the Python API, text or JSON out.

Importing this package loads nothing, running it Typer, and each command imports what it needs when it runs.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. The console script passes it to the shell."""
    try:
        from .app import main as run
    except KeyboardInterrupt:
        import sys

        print("error: Interrupted", file=sys.stderr)
        return 130
    return run(argv)
