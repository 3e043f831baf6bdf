"""The gates in order: each is one object, with its columns, predicate, explanation, remedy and canaries.

Both walls, the ladder, `contract`, `why` and the leak test read `GATES`. Most gates are `limited`: values of the contract and
of its grants limit the rows that pass, and predicate, explanation and remedy follow from these. To add a gate, write its
object here and add it to the list; `second_wall` judges it again, by hand. A row is admissible, a member of A(r), if it
passes them all.

Null counts as least privileged: zone restricted, lifecycle candidate, visibility denied, authority 0; a null safety is
requires-review, which passes. A word outside the vocabulary counts as null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from ..scope.selectors import AND, NO_PATH, allows_pathless, denies_pathless
from ..tables import CONTRACT_BOUNDS, EVIDENCE
from ..vocabulary import LIFECYCLES, ZONES
from .gate import (
    BOUNDED,
    GUIDED,
    OPEN,
    Bounds,
    Canary,
    Case,
    Contract,
    Gate,
    GateClass,
    Ground,
    Mask,
    Opening,
    Row,
    Rule,
    SegmentColumns,
)

ROOT, LEAK_TEST = "/leak-test/tree", "leak-test"
"""The work tree and the role of the leak test."""
LEFT_OUT = "left-out zone"
"""The reason for canaries in a zone that the mode excludes."""
_DENIED = "leak-test:denied"
_NO_VALUE = object()
"""For a limit under which no value is free."""
_SOURCES = 50
"""Sources of a tenant that a bounded request of the leak test names."""


# --- limits ----------------------------------------------------------------------------------------------------------


def in_words(value: Any) -> str:
    """A value of a contract; of patterns `src/ or (docs/ and *.md)`, of no value `none`."""
    if not isinstance(value, (list, tuple)):
        return "none" if value is None else str(value)
    products = [pattern.split(AND) for pattern in value]
    if len(products) == 1:
        return " and ".join(products[0])
    return " or ".join(part[0] if len(part) == 1 else f"({' and '.join(part)})" for part in products) or "none"


@dataclass(frozen=True)
class Limit:
    """A value that limits the rows that pass: a field of the contract, or of each grant behind it."""

    field: str
    layer: str
    """Who sets it: `request`, `mode`, `role`, `purpose` or `grant`."""
    says: str
    """What it demands of a row, after the gate's noun: `matches {}`."""
    stops: Callable[[SegmentColumns, Any], Mask | None]
    """The rows of a segment that a value stops; None means "none of them"."""
    free: Any = None
    """The value that stops no row. An empty list: each entry of another one denies for itself."""
    lift: Callable[[Any], Any] | None = None
    """The value under which a word passes, if any does; `free` by default."""
    needed: Callable[[Any], str] | None = None
    """What would admit a word, where that is not another value of the layer."""
    words: Callable[[Any], str] = in_words
    """The value in words."""

    def judge(self, segment: SegmentColumns, of: Mapping[str, Any]) -> Mask | None:
        """The rows of a segment that a contract or grant stops."""
        return None if of[self.field] == self.free else self.stops(segment, of[self.field])

    def demand(self, value: Any) -> str:
        """What a value demands of a row."""
        return self.says.format(self.words(value))

    def rule(self, of: Mapping[str, Any]) -> str:
        """The name of the value as a rule."""
        if self.layer == "grant":
            return of["rule_id"]
        return f"request.{self.field}" if self.layer == "request" else f"{self.layer} {of[self.layer]}"


def limited(
    name: str,
    gate_class: GateClass,
    reason_code: str,
    doc: str,
    noun: str,
    columns: tuple[str, ...],
    *limits: Limit,
    canaries: tuple[Canary, ...],
    counted: Callable[[Any], Any] = lambda word: word,
) -> Gate:
    """A gate that some limits close; `noun` is what they limit, which the first of the columns has, `counted` what its
    words count as.
    """
    of_grant = [limit for limit in limits if limit.layer == "grant"]
    of_contract = [limit for limit in limits if limit.layer != "grant"]

    def held(contract: Contract, bounds: Bounds) -> Iterator[tuple[Limit, list[Any]]]:
        """The limits with the contract or the grants of one project that set them: one free value frees all of these."""
        projects = [[*of] for _, of in groupby(sorted(bounds, key=itemgetter("project")), itemgetter("project"))]
        for limit in limits:
            for setters in projects if limit.layer == "grant" else [[contract]]:
                if all(of[limit.field] != limit.free for of in setters):
                    yield limit, setters

    def explain(contract: Contract, bounds: Bounds) -> Rule:
        rules, said = list[str](), list[str]()
        for limit, setters in held(contract, bounds):
            rules += map(limit.rule, setters)
            within = f" in {setters[0]['project']}" if limit.layer == "grant" else ""
            said.append(" or ".join(dict.fromkeys(limit.demand(of[limit.field]) for of in setters)) + within)
        return ", ".join(dict.fromkeys(rules)), f"Rows whose {noun} {'; '.join(said)}." if said else f"Every {noun}."

    def remedy(case: Case) -> Opening:
        one = SegmentColumns(EVIDENCE.from_rows([case.row]))
        word = counted(case.row[columns[0]])
        before = [gate.bound_stops for gate in GATES[: NUMBER[name] - 1] if gate.bound_stops]
        reached = [bound for bound in case.here() if not any(_any(stops(one, bound)) for stops in before)]
        rules, needed, possible = list[str](), list[str](), True
        for limit, setters in [*held(case.contract, reached)]:
            if not all(_any(limit.stops(one, of[limit.field])) for of in setters):
                continue
            for of in setters:
                value = of[limit.field]
                if limit.free == []:
                    value = [each for each in value if _any(limit.stops(one, [each]))]
                rules.append(f"{limit.rule(of)}: {noun} {limit.demand(value)}")
                of[limit.field] = limit.lift(word) if limit.lift else limit.free
                possible &= not _any(limit.judge(one, of))
            admits = f"a {limit.layer} that admits {noun} {in_words(word)}"
            needed.append(limit.needed(word) if limit.needed else admits)
        return Opening(", ".join(rules), " and ".join(needed)) if possible else _another_row(noun)

    return Gate(
        name, gate_class, reason_code, doc, columns, tuple(limit.field for limit in of_contract),
        stops=(lambda segment, contract: _either(segment, contract, of_contract)) if of_contract else None,
        bound_stops=(lambda segment, bound: _either(segment, bound, of_grant)) if of_grant else None,
        explain=explain, remedy=remedy, canaries=canaries,
    )  # fmt: skip


def _either(segment: SegmentColumns, of: Mapping[str, Any], limits: Sequence[Limit]) -> Mask | None:
    masks = [mask for limit in limits if (mask := limit.judge(segment, of)) is not None]
    return np.logical_or.reduce(masks) if masks else None


def _any(mask: Mask | None) -> bool:
    return mask is not None and bool(mask.any())


def _another_row(noun: str) -> Opening:
    return Opening("the row", f"a row with another {noun}; no contract shows this one", False)


def where(column: str, stopped: Callable[[Any, Any], object]) -> Callable[[SegmentColumns, Any], Mask | None]:
    """Stops the rows whose word in a column a value stops; `stopped` is given both."""
    return lambda segment, value: segment.where(column, lambda word: stopped(word, value))


def another(column: str) -> Callable[[SegmentColumns, Any], Mask | None]:
    """Stops the rows with another name than the value; one without a name passes."""
    return where(column, lambda name, wanted: name not in (None, wanted))


def row_of(**columns: Any) -> Callable[[Ground], Row]:
    """A canary's columns that are the same wherever it is planted."""
    return lambda ground: dict(columns)


def asks(**fields: Any) -> Callable[[Ground], Mapping[str, Any]]:
    """Request fields that are the same for every tenant."""
    return lambda ground: fields


def literal(text: str) -> str:
    """A glob that matches only this text."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


# --- whose it is -----------------------------------------------------------------------------------------------------


def _projects(contract: Contract, bounds: Bounds) -> Rule:
    return ", ".join(
        bound["rule_id"] for bound in bounds
    ), f"Rows of {', '.join(sorted({b['project'] for b in bounds}))}."


def _a_grant(case: Case) -> Opening:
    who, project = case.contract["principal"], case.row["owner_project"]
    case.bounds.append(
        dict.fromkeys(CONTRACT_BOUNDS.columns)
        | {"request_id": case.contract["request_id"], "project": project, "users": [who], "denied_paths": [],
           "zone": ZONES.values[1], "rule_id": "new"}
    )  # fmt: skip
    needed = f"a grant of project {project} to {who}, usable from {case.contract['project']}"
    return Opening("no grant that holds", needed)


PROJECT = Gate(
    "project", "access", "out_of_scope_project", "its project is one the contract reaches",
    columns=("owner_project",), explain=_projects, remedy=_a_grant,
    canaries=(
        Canary("project", lambda ground: {"owner_project": ground.other_project, "owner_user": ground.principal}),
    ),
)  # fmt: skip
"""This one never stops a row of a segment that is read, nor does the next: segments of other owners are never opened, see
`boundary_gates`."""
OWNER = limited(
    "owner", "access", "not_owner", "it belongs to the whole project, the principal or a user granted to them",
    "owner", ("owner_user",),
    Limit(
        "users", "grant", "is none or {}", where("owner_user", lambda user, users: user is not None and user not in users),
        lift=lambda user: [user],
    ),
    canaries=(Canary("owner", lambda ground: {"owner_project": ground.project, "owner_user": ground.other_principal}),),
)  # fmt: skip


def _unlisted(segment: SegmentColumns, contract: Contract) -> Mask | None:
    who = {contract["principal"], *contract["groups"]}
    return segment.where("principals", lambda readers: readers is not None and who.isdisjoint(readers))


def _readers(contract: Contract, bounds: Bounds) -> Rule:
    names = [contract["principal"], *contract["groups"]]
    return "grants", f"Rows without a list of readers, or with one that names {in_words(names)}."


def _a_reader(case: Case) -> Opening:
    readers = case.row["principals"]
    case.contract["groups"] = [*case.contract["groups"], *readers]
    needed = f"that {case.contract['principal']} or one of their groups is among {', '.join(readers) or 'nobody'}"
    return Opening("the row's list of readers", needed, bool(readers))


PRINCIPALS = Gate(
    "principals", "access", "not_principal", "its list of principals, if it has one, names the principal or a group",
    ("principals",), ("principal", "groups"), _unlisted, explain=_readers, remedy=_a_reader,
    canaries=(
        Canary("principals", lambda ground: {"principals": [ground.other_principal]}),
        Canary("nobody", row_of(principals=[])),
    ),
)  # fmt: skip

# --- how sensitive it is, and of which level -------------------------------------------------------------------------


def _zone(word: str | None) -> str:
    return word if word is not None and word in ZONES else ZONES.values[-1]


def _above(zone: str | None, most: str) -> bool:
    return most not in ZONES or ZONES.values.index(_zone(zone)) > ZONES.values.index(most)


ZONE = limited(
    "zone", "access", "denied_zone", "its zone is at most the one granted in its project, and none the mode leaves out",
    "zone", ("zone",),
    Limit("zone", "grant", "is at most {}", where("zone", _above), ZONES.values[-1]),
    Limit("excluded_zones", "mode", "is not {}", where("zone", lambda zone, out: _zone(zone) in out), []),
    canaries=(
        Canary("zone", lambda ground: None if ground.zone == "restricted" else {"zone": "restricted"}),
        Canary(LEFT_OUT, lambda ground: None if ground.zone == "public" else {"zone": "public"}, angles=(GUIDED,)),
    ),
    counted=_zone,
)  # fmt: skip
LEVEL = limited(
    "level", "access", "level_excluded", "its level is none that the mode leaves out", "level", ("level",),
    Limit("excluded_levels", "mode", "is not {}",
          where("level", lambda level, out: level is not None and level.lower() in out), []),
    canaries=(Canary("level", row_of(level="task"), angles=(GUIDED,)),),
)  # fmt: skip

# --- where it was read -----------------------------------------------------------------------------------------------


def _unpicked(segment: SegmentColumns, selectors: Sequence[str]) -> Mask:
    return ~segment.picked(selectors)


def _own_sources(ground: Ground) -> Mapping[str, Any]:
    own = sorted({ground.seen["source_id"], *sorted(ground.sources)[:_SOURCES]})
    return {"allowed_sources": [*map(literal, own), _DENIED]}


_SOURCE = ("source_id", "origin_class")
SOURCE_ALLOW = limited(
    "source_allow", "access", "out_of_scope_source", "grants and request both allow its source", "source", _SOURCE,
    Limit("sources", "grant", "matches {}", _unpicked),
    Limit("allowed_sources", "request", "matches {}", _unpicked),
    Limit("role_sources", "role", "matches {}", _unpicked),
    canaries=(Canary("source_allow", row_of(source_id="leak-test:unlisted"), _own_sources, (BOUNDED,)),),
)  # fmt: skip
SOURCE_DENY = limited(
    "source_deny", "access", "denied_source", "no denied source matches it", "source", _SOURCE,
    Limit("denied_sources", "request", "does not match {}", SegmentColumns.picked, []),
    canaries=(Canary("source_deny", row_of(source_id=_DENIED), asks(denied_sources=[_DENIED]), (BOUNDED,)),),
)  # fmt: skip
ROLE_SOURCE = limited(
    "role_source", "visibility", "forbidden_source", "the role forbids no source that matches it", "source", _SOURCE,
    Limit("forbidden_sources", "role", "does not match {}", SegmentColumns.picked, []),
    canaries=(Canary("role_source", row_of(source_id="leak-test:forbidden"), angles=(GUIDED,)),),
)  # fmt: skip

# --- under which path ------------------------------------------------------------------------------------------------


def _off_path(segment: SegmentColumns, globs: Sequence[str]) -> Mask:
    return ~segment.on(globs, pathless=allows_pathless(globs))


def _on_denied(segment: SegmentColumns, globs: Sequence[str]) -> Mask:
    return segment.on(globs, pathless=denies_pathless(globs))


def _denied(globs: Sequence[str]) -> str:
    return in_words([*dict.fromkeys([*globs, *([NO_PATH] if denies_pathless(globs) else [])])])


def _below(ground: Ground, name: str) -> Row:
    return {"path": f"{ground.folder}leak-test-{name}"}


def _denials(ground: Ground) -> Mapping[str, Any]:
    folder = literal(ground.folder)
    guarded = [f"{folder}leak-test-guarded/"] if ground.seen["path"] else []
    return {"denied_paths": [f"path:{folder}leak-test-denied/", *guarded]}


PATH_ALLOW = limited(
    "path_allow", "access", "out_of_scope_path", "grants, mode and request all allow its path", "path", ("path",),
    Limit("paths", "grant", "matches {}", _off_path),
    Limit("allowed_paths", "request", "matches {}", _off_path),
    Limit("search_paths", "mode", "matches {}", _off_path),
    canaries=(Canary("unsearched path", lambda ground: _below(ground, "unsearched/{token}"), angles=(GUIDED,)),),
)  # fmt: skip
PATH_DENY = limited(
    "path_deny", "access", "denied_path", "no denied path matches its own", "path", ("path",),
    Limit("denied_paths", "grant", "does not match {}", _on_denied, [], words=_denied),
    Limit("denied_paths", "request", "does not match {}", _on_denied, [], words=_denied),
    Limit("excluded_paths", "mode", "does not match {}", _on_denied, [], words=_denied),
    canaries=(
        Canary("path_deny", lambda ground: _below(ground, "denied/{token}.md"), _denials, (BOUNDED,)),
        Canary("no path", lambda ground: {"path": None} if ground.seen["path"] else None, _denials, (BOUNDED,)),
    ),
)  # fmt: skip

# --- what a request narrows by one name ------------------------------------------------------------------------------


def _named(field: str, what: str, *of_grant: Limit) -> Gate:
    def asked(ground: Ground) -> Mapping[str, Any]:
        return {field: ground.seen.get(field) or f"leak-test-{field}"}

    return limited(
        field, "access", f"wrong_{field}", f"it has no {what} or the request's", what, (field,),
        *of_grant, Limit(field, "request", "is none or {}", another(field)),
        canaries=(Canary(field, row_of(**{field: "leak-test-elsewhere"}), asked, (BOUNDED,)),),
    )  # fmt: skip


NAMESPACE = _named(
    "namespace", "namespace",
    Limit("namespaces", "grant", "is none or {}", where("namespace", lambda name, names: name not in (None, *names))),
)  # fmt: skip
BRANCH = _named("branch", "branch")
TEST_SUITE = _named("test_suite", "test suite")
WORKSPACE = limited(
    "workspace", "access", "wrong_workspace", "it has no work tree or the request's, whose text shadows others of its path",
    "work tree", ("workspace_root", "owner_project", "owner_user", "source_id", "path"),
    Limit(
        "workspace_root", "request", "is none or that of the request, {}", another("workspace_root"), free=_NO_VALUE,
        lift=lambda root: root,
    ),
    canaries=(
        Canary("uncommitted", row_of(workspace_root=f"{ROOT}-elsewhere"), angles=(OPEN,)),
        Canary("workspace", row_of(workspace_root=f"{ROOT}-elsewhere"), asks(workspace_root=ROOT), (BOUNDED,)),
    ),
)  # fmt: skip
"""A request without a work tree sees none. It stops committed text that a work tree shadows, too. That
depends on other rows, so the step `boundary_gates` does it after every row is judged."""

# --- whether it may be seen, and trusted -----------------------------------------------------------------------------

ACCEPTED_ORIGINS = {
    "current-workspace": ("workspace",),
    "project-doc": ("project-doc", "team-standard", "decision-record"),
    "verified-memory": ("memory",),
    "session-event": ("session-event", "artifact"),
}
"""The origin classes behind each accepted class of S0.19. Standards and decision records are documents of the project,
artifacts belong to a session; preferences, structured records, external and remote text belong to none. A memory counts
only while it is verified."""


def _declared(name: str, reason_code: str, doc: str, stopped: Callable[[Any], object], planted: str) -> Gate:
    """A gate that no contract can open, since the row was declared so."""
    column = f"declared_{name}"
    return Gate(
        name, "visibility", reason_code, doc, (column,),
        stops=lambda segment, contract: segment.where(column, stopped),
        explain=lambda contract, bounds: ("", f"Only if {doc}."), remedy=lambda case: _another_row(column.replace("_", " ")),
        canaries=(Canary(name, row_of(**{column: planted})),), hides=True,
    )  # fmt: skip


VISIBILITY = _declared(
    "visibility", "not_model_visible", "it may enter model input", lambda word: word != "model-visible", "runtime-only"
)
SAFETY = _declared("safety", "safety_blocked", "it is not blocked", lambda word: word == "blocked", "blocked")


def _state(word: str | None) -> str:
    return word if word is not None and word in LIFECYCLES else "candidate"


_BY_REQUEST = {"candidate": "max_unverified_items above 0", "verified": "a purpose that shows verified rows"}


_of_other_state = where("lifecycle", lambda word, states: _state(word) not in states)
LIFECYCLE = limited(
    "lifecycle", "visibility", "lifecycle_excluded", "its state is one the contract includes", "state", ("lifecycle",),
    Limit(
        "include_states", "purpose", "is {}", _of_other_state, needed=lambda state: _BY_REQUEST.get(state, "allow_stale_memory"),
        lift=lambda word: [state for state in LIFECYCLES.values if state != "revoked"],
    ),
    Limit("states", "grant", "is {}", _of_other_state),
    canaries=(Canary("revoked", row_of(lifecycle="revoked")),),
    counted=_state,
)  # fmt: skip
ROLE = limited(
    "role", "visibility", "role_mismatch", "it does not exclude the role", "list of excluded roles", ("excluded_roles",),
    Limit(
        "role", "role", "does not name {}", where("excluded_roles", lambda roles, role: role in (roles or ())),
        needed=lambda roles: f"a role that is none of {', '.join(roles)}",
    ),
    canaries=(Canary("role", row_of(excluded_roles=[LEAK_TEST]), angles=(GUIDED,)),),
)  # fmt: skip


def _unaccepted(segment: SegmentColumns, accepted: Sequence[str]) -> Mask | None:
    origins = {origin for name in accepted for origin in ACCEPTED_ORIGINS.get(name, ())}
    other = segment.where("origin_class", lambda origin: origin not in origins)
    unverified = segment.where("lifecycle", lambda word: _state(word) != "verified")
    memory = segment.where("origin_class", lambda origin: origin == "memory")
    if memory is None or unverified is None:
        return other
    return memory & unverified if other is None else other | (memory & unverified)


def _of_no_class(ground: Ground) -> Row | None:
    accepted = any(ground.seen["origin_class"] in origins for origins in ACCEPTED_ORIGINS.values())
    return {"origin_class": "external"} if accepted else None


ACCEPTED_AUTHORITY = limited(
    "accepted_authority", "visibility", "authority_not_accepted", "its class of source is accepted",
    "class of source", ("origin_class", "lifecycle"),
    Limit("accepted_authority", "request", "is of {}", _unaccepted),
    canaries=(Canary("accepted_authority", _of_no_class, asks(accepted_authority=[*ACCEPTED_ORIGINS]), (BOUNDED,)),),
)  # fmt: skip
MIN_AUTHORITY = limited(
    "min_authority", "visibility", "authority_below_min", "its authority is at least the contract's",
    "authority", ("authority",),
    Limit(
        "min_authority", "request", "is at least {}", where("authority", lambda rank, least: (rank or 0) < least),
        lift=lambda rank: rank,
    ),
    canaries=(Canary("min_authority", row_of(authority=0), asks(min_authority=1), (BOUNDED,)),),
    counted=lambda rank: rank or 0,
)  # fmt: skip

# --- when: one kernel over (row, instant) pairs, `time_gates`, judges these, because a batch has thousands of instants ------

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)


def _instant(value: datetime | None) -> str:
    return "open" if value is None else value.isoformat().replace("+00:00", "Z")


def _another_instant(case: Case) -> Opening:
    row, asked = case.row, case.contract["as_of"]
    spans = []
    for placed in case.placements:
        start = max(filter(None, (placed["recorded_time"], row["valid_from"])))
        ends = [end for end in (placed["superseded_at"], placed["deleted_at"], row["valid_until"]) if end]
        if not ends or start < min(ends):
            spans.append((start, min(ends) if ends else None))
    if not spans:
        return Opening(f"as_of {_instant(asked)}", "another row: this one was never valid while it existed", False)
    case.contract["as_of"] = spans[-1][0]
    periods = [f"from {_instant(start)}" + (f" until {_instant(end)}" if end else " on") for start, end in spans]
    return Opening(f"as_of {_instant(asked)}", f"an as_of {' or '.join(periods)}")


def _another_window(case: Case) -> Opening:
    start, end = case.contract["window_start"], case.contract["window_end"]
    case.contract |= {"window_start": None, "window_end": None}
    happened = case.row["event_time"] or case.placements[-1]["recorded_time"]
    rule = f"request.time: from {_instant(start)} to {_instant(end)}"
    return Opening(rule, f"a window that has {_instant(happened)} in it")


def _at_instant(name: str, reason_code: str, doc: str, column: str, days: int) -> Gate:
    """A gate that `as_of` closes; its canary has an instant some days from that of the request."""

    def rule(contract: Contract, bounds: Bounds) -> Rule:
        if contract["include_deleted"] and name in ("superseded", "deleted"):
            return f"mode {contract['mode']}", "What had ended too, as history."
        return "as_of", f"Only if {doc}, {_instant(contract['as_of'])}."

    canary = Canary(name, lambda ground: {column: ground.as_of + days * _DAY})
    return Gate(name, "time", reason_code, doc, explain=rule, remedy=_another_instant, canaries=(canary,))


def _bounds_of(ground: Ground) -> tuple[datetime, datetime]:
    return ground.as_of - 36_500 * _DAY, ground.as_of - 3 * _HOUR


def _asked_window(ground: Ground) -> Mapping[str, Any]:
    start, end = _bounds_of(ground)
    return {"time": {"include_after": start.isoformat(), "exclude_after": end.isoformat()}}


def _in_window(name: str, reason_code: str, doc: str, event: Callable[[datetime, datetime], datetime]) -> Gate:
    def explain(contract: Contract, bounds: Bounds) -> Rule:
        return ("request.time", f"Only if {doc}, {_instant(contract[name])}.") if contract[name] else ("", "Open.")

    canary = Canary(name, lambda ground: {"event_time": event(*_bounds_of(ground))}, _asked_window, (BOUNDED,))
    return Gate(name, "time", reason_code, doc, explain=explain, remedy=_another_window, canaries=(canary,))


_TIMES = (
    _at_instant("recorded", "after_as_of", "it was recorded at or before as_of", "recorded_time", 1),
    _at_instant("superseded", "superseded", "no other text had taken its place at as_of", "superseded_at", -1),
    _at_instant("deleted", "deleted", "it was not removed at as_of", "deleted_at", -1),
    _at_instant("valid_from", "not_yet_valid", "its validity has begun at as_of", "valid_from", 1),
    _at_instant("valid_until", "expired", "its validity has not ended at as_of", "valid_until", -1),
    _in_window("window_start", "before_window", "it did not happen before the window", lambda start, end: start - _DAY),
    _in_window("window_end", "after_window", "it happened before the window's end", lambda start, end: end + _HOUR),
)

_IN_ORDER = (
    PROJECT, OWNER, PRINCIPALS, ZONE, SOURCE_ALLOW, SOURCE_DENY, PATH_ALLOW, PATH_DENY, NAMESPACE, BRANCH, WORKSPACE,
    TEST_SUITE, LEVEL, VISIBILITY, LIFECYCLE, SAFETY, ROLE_SOURCE, ROLE, ACCEPTED_AUTHORITY, MIN_AUTHORITY, *_TIMES,
)  # fmt: skip

GATES = tuple(replace(gate, number=number) for number, gate in enumerate(_IN_ORDER, start=1))
"""Every gate, in the order the ladder shows them. Access gates leave no trace but a count for auditors; visibility gates
and time gates record what they withhold."""

NUMBER = {gate.name: gate.number for gate in GATES}

HIDING = frozenset(gate.name for gate in GATES if gate.hides)
"""Gates whose rows end as `hidden` rather than `rejected`."""
