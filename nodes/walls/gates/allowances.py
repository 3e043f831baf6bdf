"""Common parts of the allowances: `source_allow` and `path_allow` apply limits of grants, request, and mode or role.

Any matching denial applies; of several, the most specific rule is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...scope.selectors import AND
from ...vocabulary import ORIGIN_CLASSES
from .gate import Bounds, Case, Contract, Opening, Rule


def in_words(patterns: Sequence[str]) -> str:
    """A list of patterns: `src/ or (docs/ and *.md)`."""
    products = [pattern.split(AND) for pattern in patterns]
    if len(products) == 1:
        return " and ".join(products[0])
    return " or ".join(part[0] if len(part) == 1 else f"({' and '.join(part)})" for part in products) or "none"


def most_specific(patterns: Iterable[str]) -> str:
    """The pattern with the most literal characters; an origin class is the least specific."""
    return max(sorted(patterns), key=lambda pattern: (pattern not in ORIGIN_CLASSES, len(pattern.replace("*", ""))))


def allowed(column: str, field: str, what: str) -> Callable[[Contract, Bounds], Rule]:
    """Explains the allowances of grants, of the request, and of the mode (paths) or role (sources): all bind."""

    def rule(contract: Contract, bounds: Bounds) -> Rule:
        limits = [bound for bound in bounds if bound[column] is not None]
        granted = [f"{in_words(bound[column])} in {bound['project']}" for bound in limits]
        asked = contract[field]
        layer, chosen = _layer(column)
        if asked is not None:
            granted.append(f"{in_words(asked)} by the request")
        if contract[chosen] is not None:
            granted.append(f"{in_words(contract[chosen])} by the {layer}")
        rules = [*(bound["rule_id"] for bound in limits), *([f"request.{field}"] if asked is not None else []),
                 *([f"{layer} {contract[layer]}"] if contract[chosen] is not None else [])]  # fmt: skip
        return ", ".join(rules), f"Only {what} that match {'; '.join(granted)}." if granted else f"Every {what[:-1]}."

    return rule


def allowance(column: str, field: str, of_row: str) -> Callable[[Case], Opening]:
    """The changes that would admit a row excluded by an allowance."""

    def opened(case: Case) -> Opening:
        value = case.row[of_row]
        asked = case.contract[field]
        limits = [(bound["rule_id"], bound[column]) for bound in case.here() if bound[column] is not None]
        if asked is not None:
            limits.append((f"request.{field}", asked))
        layer, chosen = _layer(column)
        if case.contract[chosen] is not None:
            limits.append((f"{layer} {case.contract[layer]}", case.contract[chosen]))
            case.contract[chosen] = None
        rules = ", ".join(f"{rule}: only {in_words(patterns)}" for rule, patterns in limits)
        case.contract[field] = None
        for bound in case.here():
            bound[column] = None
        return Opening(rules, f"allowances that match {value}" if value else "no allowances: the row has none to match")

    return opened


def _layer(column: str) -> tuple[str, str]:
    """The policy that limits sources or paths besides grants and request, and the contract field with its choice."""
    return ("mode", "search_paths") if column == "paths" else ("role", "role_sources")
