"""Mode policies: the files of `data/policies/modes/`, in the keys of document 001, read into one table.

The document's own YAML is read unchanged: `search_paths`, `retrieval_params` and `strategies` in its words. Its prose
about material to include and exclude becomes entries with selectors here: `{what, paths, when}` and `{what, paths |
levels | zones, unless}`, where `when` and `unless` name a variable of the request.
"""

from __future__ import annotations

import re
from typing import Any

from ....nodes.vocabulary import LEVELS, ZONES
from ...parsing.patterns import GLOBS, path_glob
from ...parsing.yaml_files import YamlItem

__all__ = ["mode_choices"]

REQUIRED = ("mode", "search_paths", "retrieval_params", "strategies")
TOP = (*REQUIRED, "include", "exclude")
_PARAMS = ("k_in", "k_out", "chunk_expansion", "exact_lookups", "time_window", "include_deleted")
INCLUDED = ("what", "paths", "when")
EXCLUDED = ("what", "paths", "levels", "zones", "unless")
_FLAGS = ("chunk_expansion", "exact_lookups", "include_deleted")
STRATEGIES = {
    "semantic": "semantic",
    "bm25": "lexical",
    "keyword": "lexical",
    "exact": "exact",
    "temporal": "recent",
    "citation": "expansion",
    "cross-encoder": None,
    "schema": None,
}
"""First word of a strategy, and the lane that every sub-query then uses. `cross-encoder` needs a model named by the
settings, and a request reports if none is set; records are checked against their schema by `index --add sot=FILE`: these two add
no lane.
"""

_VARIABLE = re.compile(r"[a-z][a-z0-9_]*")
_TEMPLATE = re.compile(r"(?:/|\*\*/)(?:[^{}\x00-\x1f]|\{[a-z][a-z0-9_]*\})*")
_WINDOW = re.compile(r"(?:last_)?(?P<number>\d{1,5}) ?_?(?P<unit>d|days?|w|weeks?)")


def mode_choices(fields: dict[str, YamlItem]) -> dict[str, Any]:
    """The columns of MODE_POLICIES from one file.

    Raises:
        PolicyError: naming file, key, expected and got.
    """
    params = fields["retrieval_params"].fields(_PARAMS, required=("k_in", "k_out"))
    words = [_strategy(item) for item in fields["strategies"].items()]
    days, windowed = params["time_window"].optional(_window) or (None, [])
    include = [entry for item in fields["include"].items() for entry in _included(item)]
    exclude = [entry for item in fields["exclude"].items() for entry in _excluded(item)]
    flags = {name: bool(params[name].optional(YamlItem.flag)) for name in _FLAGS}
    return {
        "search_paths": _templates(fields["search_paths"], needed=True),
        "include_paths": [path for path, _ in include],
        "include_when": [when for _, when in include],
        "exclude_kinds": [kind for kind, _, _ in exclude],
        "exclude_values": [value for _, value, _ in exclude],
        "exclude_unless": [unless for _, _, unless in exclude],
        "lanes": list(dict.fromkeys(lane for word in words if (lane := STRATEGIES[word]))),
        "lane_k": params["k_in"].count(1),
        "max_items": params["k_out"].count(1),
        "window_days": days,
        "window_paths": windowed,
        **flags,
        "citation_chaining": "citation" in words,
        "newest_first": "temporal" in words,
        "cross_encoder": "cross-encoder" in words,
    }


def _strategy(item: YamlItem) -> str:
    """The first word of a strategy; the rest is a description."""
    word = item.text().split()[0].strip(":,").lower()
    if word not in STRATEGIES:
        raise item.wrong(f"a text that begins with one of {', '.join(STRATEGIES)}")
    return word


def _window(item: YamlItem) -> tuple[float, list[str]]:
    """`last_30_days`, for every path, or `{last: 30d, paths: [...]}`."""
    if not isinstance(item.value, dict):
        return _days(item), ["**"]
    fields = item.fields(("last", "paths"), required=("last", "paths"))
    return _days(fields["last"]), [path.removeprefix("/") for path in _templates(fields["paths"], needed=True)]


def _days(item: YamlItem) -> float:
    match = _WINDOW.fullmatch(item.value) if isinstance(item.value, str) else None
    if match is None or not int(match["number"]):
        raise item.wrong("a window such as last_30_days, 30d or 4w")
    return float(match["number"]) * (7 if match["unit"].startswith("w") else 1)


def _included(item: YamlItem) -> list[tuple[str, str]]:
    fields = item.fields(INCLUDED, required=("what", "paths"))
    fields["what"].text()
    when = fields["when"].optional(_variable) or ""
    return [(path, when) for path in _templates(fields["paths"], needed=True)]


def _excluded(item: YamlItem) -> list[tuple[str, str, str]]:
    fields = item.fields(EXCLUDED, required=("what",))
    fields["what"].text()
    unless = fields["unless"].optional(_variable) or ""
    found = [("path", path, unless) for path in _templates(fields["paths"])]
    found += [("level", level, unless) for level in fields["levels"].words(LEVELS)]
    found += [("zone", zone, unless) for zone in fields["zones"].words(ZONES)]
    if not found:
        raise item.wrong("paths, levels or zones to leave out")
    return found


def _variable(item: YamlItem) -> str:
    if not _VARIABLE.fullmatch(item.text()):
        raise item.wrong("the name of a variable, such as debugging")
    return item.text()


def _templates(item: YamlItem, *, needed: bool = False) -> list[str]:
    """Path templates: from the root (`/`) or from anywhere (`**/`)."""
    found = []
    for each in item.items():
        if not _TEMPLATE.fullmatch(each.text()):
            raise each.wrong("a path that begins with / or **/, with variables such as {venture}")
        if (glob := path_glob(each.text().removeprefix("/") or "**")) is None:
            raise each.wrong("a path such as /ventures/{venture}/notes/", hint=GLOBS)
        found.append(f"/{glob}" if each.text().startswith("/") else glob)
    if needed and not found:
        raise item.wrong("at least one path")
    return found
