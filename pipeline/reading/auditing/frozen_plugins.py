"""The plugins of a run with frozen tables: recorded score terms can be weighted again without their plugin.

Reads: a stored run. Gives: `frozen_plugins`; `recorded_terms`, the names of the terms of plugins that it recorded.

Note: gates always judge the candidates again, so a run with gates of a plugin needs it installed. Lanes and term values
are not computed here; if lanes run again, `line_of` requires every plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.columns.keys import pair_codes, positions
from ....nodes.errors import InputError
from ....nodes.plugins import NO_PLUGINS, Plugins
from ....nodes.score_terms import ScoreTerm, terms_of_plugins
from ....nodes.task_aware_reranking import ranked
from ...plugins import plugins_of

__all__ = ["frozen_plugins", "recorded_terms"]


def recorded_terms(run: Any) -> tuple[str, ...]:
    """The score terms of plugins that a run recorded."""
    return terms_of_plugins(run.table("rerank_weights").column_names)


def frozen_plugins(run: Any, *, judging: bool = True) -> Plugins:
    """The plugins of a run as installed now; of a missing one, the score terms as recorded.

    Args:
        judging: whether candidates are judged again, including by gates of plugins.

    Raises:
        InputError: candidates are judged again, and a plugin with gates is not installed.
    """
    try:
        plugins = plugins_of(run)
    except InputError:
        if judging and terms_of_plugins(pc.unique(run.table("filter_ladder")["gate"]).to_pylist()):
            raise
        plugins = NO_PLUGINS
    here = {term.name: term for term in plugins.score_terms}
    gone = _recorded(run, [name for name in recorded_terms(run) if name not in here])
    return replace(plugins, score_terms=(*plugins.score_terms, *gone))


def _recorded(run: Any, names: Sequence[str]) -> list[ScoreTerm]:
    """Score terms of plugins that are not installed: with the weight and the reason that the run recorded."""
    if not names:
        return []
    terms = [ScoreTerm(name, "", weight=_own_weight(run, name), value=_not_installed) for name in names]
    again = ranked(run.table("score_terms"), run.table("rerank_weights"), Plugins(score_terms=tuple(terms)))
    stored = run.table("ranked")
    own, known = pair_codes(*((rows["request_id"], rows["evidence_id"]) for rows in (again, stored)))
    reasons = stored["selected_reason"].take(pa.array(positions(own, known)))
    found = []
    for term in terms:
        of_term = reasons.filter(pc.equal(again["selected_reason"], f"strong in {term.name}"))
        found.append(replace(term, reason=of_term[0].as_py()) if len(of_term) else term)
    return found


def _own_weight(run: Any, name: str) -> float:
    """The term's own weight, from a request for which neither request nor purpose set one; 0 if there is none."""
    stated = f"weight_{name}"
    policies, requests, weights = run.stored("purpose_policies"), run.table("requests"), run.table("rerank_weights")
    if stated in policies.column_names:
        weighing = policies["purpose"].filter(policies[stated].is_valid())
        requests = requests.filter(pc.invert(pc.is_in(requests["purpose"], weighing.combine_chunks())))
    if stated in requests.column_names:
        requests = requests.filter(requests[stated].is_null())
    own = weights[name].filter(pc.is_in(weights["request_id"], requests["request_id"].combine_chunks()))
    return own[0].as_py() if len(own) else 0.0


def _not_installed(*_: object) -> NoReturn:
    raise InputError.described("recorded values of its terms", "none", "a plugin that is not installed")
