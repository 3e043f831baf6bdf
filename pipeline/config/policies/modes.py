"""Mode policies: the files of `data/policies/modes/`, in the keys of document 001, read into one table.

The document's own YAML is read unchanged: `search_paths`, `retrieval_params` and `strategies` in its words. Its prose
about material to include and exclude becomes entries with selectors here: `{what, paths, when}` and `{what, paths |
levels | zones, unless}`, where `when` and `unless` name a variable of the request.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ....nodes.vocabulary import LEVELS, MODES, ZONES
from ...parsing import values
from ...parsing.documents import ABSENT, Count, Document, FirstVersion, Text, converted, expected, word
from ...parsing.patterns import GLOBS, path_glob
from ...parsing.quoting import shown, shown_key

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

_TEMPLATE = re.compile(r"(?:/|\*\*/)(?:[^{}\x00-\x1f]|\{[a-z][a-z0-9_]*\})*")


def _strategy(value: str) -> str:
    """The first word of a strategy; the rest is a description."""
    first = value.split()[0].strip(":,").lower()
    if first not in STRATEGIES:
        raise expected(f"a text that begins with one of {', '.join(STRATEGIES)}", shown_key(first))
    return first


def _template(value: str) -> str:
    """A path template: from the root (`/`) or from anywhere (`**/`)."""
    if not _TEMPLATE.fullmatch(value):
        raise expected("a path that begins with / or **/, with variables such as {venture}", str(shown(value)))
    if (glob := path_glob(value.removeprefix("/") or "**")) is None:
        raise expected("a path such as /ventures/{venture}/notes/", f"{shown(value)} ({GLOBS})")
    return f"/{glob}" if value.startswith("/") else glob


Templates = tuple[Annotated[Text, AfterValidator(_template)], ...]
SomeTemplates = Annotated[Templates, Field(min_length=1)]
Variable = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]


class Window(Document):
    """How far back paths are read; `last_30_days` is a window for every path."""

    last: Annotated[float, converted(values.days), Field(gt=0)]
    paths: SomeTemplates = ("**",)


class Params(Document):
    """The counts and switches of a mode."""

    k_in: Count
    k_out: Count
    chunk_expansion: bool = False
    exact_lookups: bool = False
    time_window: Annotated[
        Window, BeforeValidator(lambda value: {"last": value} if isinstance(value, str) else value)
    ] = ABSENT
    include_deleted: bool = False


class Include(Document):
    """Material that a mode adds."""

    what: Text
    paths: SomeTemplates
    when: Variable = ""


class Exclude(Document):
    """Material that a mode leaves out."""

    what: Text
    paths: Templates = ()
    levels: tuple[Annotated[str, word(LEVELS)], ...] = ()
    zones: tuple[Annotated[str, word(ZONES)], ...] = ()
    unless: Variable = ""

    @model_validator(mode="after")
    def _some(self) -> Exclude:
        if not (self.paths or self.levels or self.zones):
            raise expected("paths, levels or zones to leave out", "none")
        return self


class Mode(Document):
    """The policy of a mode, in the keys of document 001."""

    schema_version: FirstVersion = 1
    mode: Annotated[str, word(MODES)]
    search_paths: SomeTemplates
    retrieval_params: Params
    strategies: tuple[Annotated[Text, AfterValidator(_strategy)], ...]
    include: tuple[Include, ...] = ()
    exclude: tuple[Exclude, ...] = ()


def mode_choices(mode: Mode) -> dict[str, Any]:
    """The columns of MODE_POLICIES."""
    params, window = mode.retrieval_params, mode.retrieval_params.time_window
    include = [(path, entry.when) for entry in mode.include for path in entry.paths]
    exclude = [
        (kind, value, entry.unless)
        for entry in mode.exclude
        for kind, values in (("path", entry.paths), ("level", entry.levels), ("zone", entry.zones))
        for value in values
    ]
    return {
        "search_paths": mode.search_paths,
        "include_paths": [path for path, _ in include],
        "include_when": [when for _, when in include],
        "exclude_kinds": [kind for kind, _, _ in exclude],
        "exclude_values": [value for _, value, _ in exclude],
        "exclude_unless": [unless for _, _, unless in exclude],
        "lanes": list(dict.fromkeys(lane for one in mode.strategies if (lane := STRATEGIES[one]))),
        "lane_k": params.k_in,
        "max_items": params.k_out,
        "window_days": window and window.last,
        "window_paths": [path.removeprefix("/") for path in window.paths] if window else [],
        "chunk_expansion": params.chunk_expansion,
        "exact_lookups": params.exact_lookups,
        "include_deleted": params.include_deleted,
        "citation_chaining": "citation" in mode.strategies,
        "newest_first": "temporal" in mode.strategies,
        "cross_encoder": "cross-encoder" in mode.strategies,
    }
