"""Whether a difference between systems is more than chance: paired t-tests, corrected, and intervals.

Reads the value of every system for every query. Gives per system its mean with an interval, and its difference from one
system with an interval, the p of a paired t-test, and that p corrected for the number of systems (Holm 1979). The
t-test and the randomization test agree on retrieval data (Smucker et al. 2007); Wilcoxon's and the sign test do not.
"""

from __future__ import annotations

from warnings import catch_warnings

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ...nodes.errors import InputError
from .metrics import package

INTERVAL = 0.95
"""The coverage of intervals, those of the t-test."""

Float = NDArray[np.float64]


def compared(values: pd.DataFrame, against: str) -> pd.DataFrame:
    """One row per system, in the order of the columns: mean, low, high, difference, difference_low, difference_high, p, p_holm.

    A difference is the system's mean minus that of `against`. p and its correction are NaN for `against` itself and
    where there are fewer than two queries; 1 where no query differs, and such a system is not counted in the
    correction.

    Args:
        values: a row per query, a column per system.
        against: the column that the others are compared with.

    Raises:
        InputError: there is no such column, or scipy is missing.
    """
    if against not in values.columns:
        raise InputError.one_of(tuple(values.columns), against, "--against")
    cells = values.to_numpy(dtype=np.float64)
    differences = cells - values[[against]].to_numpy(dtype=np.float64)
    _, low, high = paired_t(cells)
    p, difference_low, difference_high = paired_t(differences)
    p[values.columns.get_loc(against)] = np.nan
    differing = np.where((differences == 0).all(axis=0), np.nan, p)
    return pd.DataFrame(
        {
            "mean": cells.mean(axis=0), "low": low, "high": high, "difference": differences.mean(axis=0),
            "difference_low": difference_low, "difference_high": difference_high, "p": p, "p_holm": np.where(np.isnan(differing), p, holm(differing)),
        },
        index=values.columns,
    )  # fmt: skip


def paired_t(differences: Float) -> tuple[Float, Float, Float]:
    """p of the paired t-test and the interval of the mean, for each column; NaN for fewer than two rows, p 1 where nothing differs."""
    stats = package("scipy.stats", "eval")
    if len(differences) < 2:
        unknown = np.full(differences.shape[1], np.nan)
        return unknown, unknown, unknown
    with np.errstate(all="ignore"), catch_warnings(action="ignore"):  # a column without variance
        result = stats.ttest_1samp(differences, 0.0)
    interval = result.confidence_interval(INTERVAL)
    return np.where((differences == 0).all(axis=0), 1.0, result.pvalue), interval.low, interval.high


def holm(p: Float) -> Float:
    """p adjusted step by step from the smallest (Holm 1979), in the same order; NaN is kept and not counted."""
    adjusted, known = p.copy(), np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted
