"""Options of the parts of the bench."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """`work` is the folder that corpora are built in, `seconds_per_round` what one system may take per round."""

    work: Path
    chunks: int = 100_000
    rounds: int = 5
    quick: bool = False
    eval_data: Path | None = None

    @property
    def seconds_per_round(self) -> float:
        """Seconds that one system may take in one round."""
        return 0.2 if self.quick else 1.0

    def batch(self, queries: int) -> int:
        """Queries per round: a tenth when it has to be quick."""
        return max(20, queries // 10) if self.quick else queries
