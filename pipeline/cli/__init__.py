"""The command line `scoped-retrieval`: a thin door. Flags in, one call of the Python API, text or JSON out.

Importing this package loads Typer and nothing of the data stack: each command imports what it needs when it runs.
"""

from __future__ import annotations

from .app import main

__all__ = ["main"]
