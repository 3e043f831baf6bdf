"""The gates in order: each is one object, with its columns, predicate, explanation, remedy and canaries.

Both walls, the ladder, `contract`, `why` and the leak test read `GATES`. To add a gate, write its object here and add
it to the list; `second_wall` judges it again, by hand. A row is admissible, a member of A(r), if it passes them all.

Null counts as least privileged: zone restricted, lifecycle candidate, visibility denied, authority 0; a null safety is
requires-review, which passes. A word outside the vocabulary counts as null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from ..scope.selectors import AND, allows_pathless, denies_pathless, glob_mask, selected
from ..tables import CONTRACT_BOUNDS
from ..vocabulary import LIFECYCLES, ORIGIN_CLASSES, ZONES
from .gate import BOUNDED, GUIDED, OPEN, Bounds, Canary, Case, Contract, Explain, Gate, Ground, Mask, Opening, Row, Rule

ROOT, LEAK_TEST = "/leak-test/tree", "leak-test"
"""The work tree and the role of the leak test."""
LEFT_OUT, NO_PATH = "left-out zone", "no path"
"""The reasons for canaries in a zone that the mode excludes, and without a path where the request denies a folder: they
may belong to it."""
_DENIED = "leak-test:denied"
_SOURCES = 50
"""Sources of a tenant that a bounded request of the leak test names."""

Remedy = Callable[[Case], Opening]

# --- how gates speak -------------------------------------------------------------------------------------------------


def always(says: str) -> Explain:
    """An explanation that is the same for every contract."""
    return lambda contract, bounds: ("", says)


def chosen(field: str, rule: str, none: str, some: str, words: Callable[[Any], str] = str) -> Explain:
    """Explains a gate that one field of the contract closes; `rule` may name other fields of it."""

    def explained(contract: Contract, bounds: Bounds) -> Rule:
        value = contract[field]
        return (rule.format(**contract), some.format(words(value))) if value else ("", none)

    return explained


def lifted(field: str, value: Callable[[Row], Any], says: Callable[[Any, Row], tuple[str, str]]) -> Remedy:
    """Another value of one field of the contract; `says` is given the old one and the row."""

    def opened(case: Case) -> Opening:
        old, case.contract[field] = case.contract[field], value(case.row)
        return Opening(*says(old, case.row))

    return opened


def declared(column: str, wanted: str) -> Remedy:
    """A gate that no contract can open, since the row was declared so."""
    return lambda case: Opening("the row", f"a row that is declared {wanted}, not {case.row[column]}", False)


def row_of(**columns: Any) -> Callable[[Ground], Row]:
    """A canary's columns that are the same wherever it is planted."""
    return lambda ground: dict(columns)


def asks(**fields: Any) -> Callable[[Ground], Mapping[str, Any]]:
    """Request fields that are the same for every tenant."""
    return lambda ground: fields


def granted_by(bounds: Bounds) -> str:
    """The rules of grants, in words."""
    return ", ".join(bound["rule_id"] for bound in bounds)


def by_mode(contract: Contract, excluded: Sequence[str] | None) -> list[str]:
    """The mode as a rule, where it restricts something."""
    return [f"mode {contract['mode']}"] if excluded else []


def listed(values: Sequence[str]) -> str:
    """Values as a list in prose."""
    return ", ".join(values) or "none"


def in_words(patterns: Sequence[str]) -> str:
    """A list of patterns: `src/ or (docs/ and *.md)`."""
    products = [pattern.split(AND) for pattern in patterns]
    if len(products) == 1:
        return " and ".join(products[0])
    return " or ".join(part[0] if len(part) == 1 else f"({' and '.join(part)})" for part in products) or "none"


def literal(text: str) -> str:
    """A glob that matches only this text."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in text)


def most_specific(patterns: Iterable[str]) -> str:
    """The pattern with the most literal characters, which is reported of several; an origin class is the least specific."""
    return max(sorted(patterns), key=lambda pattern: (pattern not in ORIGIN_CLASSES, len(pattern.replace("*", ""))))


def allowed(column: str, field: str, layer: str, limit: str) -> Explain:
    """Explains the allowances of grants, of the request, and of the mode (paths) or role (sources): all bind."""

    def rule(contract: Contract, bounds: Bounds) -> Rule:
        limits = [bound for bound in bounds if bound[column] is not None]
        granted = [f"{in_words(bound[column])} in {bound['project']}" for bound in limits]
        rules = [bound["rule_id"] for bound in limits]
        if contract[field] is not None:
            granted.append(f"{in_words(contract[field])} by the request")
            rules.append(f"request.{field}")
        if contract[limit] is not None:
            granted.append(f"{in_words(contract[limit])} by the {layer}")
            rules.append(f"{layer} {contract[layer]}")
        return ", ".join(
            rules
        ), f"Only {column} that match {'; '.join(granted)}." if granted else f"Every {column[:-1]}."

    return rule


def allowance(column: str, field: str, layer: str, limit: str, of_row: str) -> Remedy:
    """The changes that would admit a row excluded by an allowance."""

    def opened(case: Case) -> Opening:
        limits = [(bound["rule_id"], bound[column]) for bound in case.here()]
        limits += [
            (f"request.{field}", case.contract[field]),
            (f"{layer} {case.contract[layer]}", case.contract[limit]),
        ]
        rules = ", ".join(f"{rule}: only {in_words(patterns)}" for rule, patterns in limits if patterns is not None)
        case.contract |= {field: None, limit: None}
        case.grant(**{column: None})
        value = case.row[of_row]
        return Opening(rules, f"allowances that match {value}" if value else "no allowances: the row has none to match")

    return opened


# --- whose it is -----------------------------------------------------------------------------------------------------


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
    "project",
    "access",
    "out_of_scope_project",
    "its project is one the contract reaches",
    columns=("owner_project",),
    explain=lambda contract, bounds: (
        granted_by(bounds), f"Rows of {listed(sorted({bound['project'] for bound in bounds}))}."
    ),
    remedy=_a_grant,
    canaries=(
        Canary("project", lambda ground: {"owner_project": ground.other_project, "owner_user": ground.principal}),
    ),
)  # fmt: skip
"""This one and the next never stop a row of a segment that is read: segments of other owners are never opened, see
`boundary_gates`."""


def _owner(contract: Contract, bounds: Bounds) -> Rule:
    users = sorted({user for bound in bounds for user in bound["users"]})
    return granted_by(bounds), f"Rows of the whole project, and those of {listed(users)}."


def _a_user(case: Case) -> Opening:
    user = case.row["owner_user"]
    for bound in case.here():
        bound["users"] = [*bound["users"], user]
    return Opening(case.rules(), f"a grant with users: [{user}]")


OWNER = Gate(
    "owner",
    "access",
    "not_owner",
    "it belongs to the whole project, the principal or a user granted to them",
    columns=("owner_user",),
    explain=_owner,
    remedy=_a_user,
    canaries=(Canary("owner", lambda ground: {"owner_project": ground.project, "owner_user": ground.other_principal}),),
)


def _unlisted(segment: Any, contract: Contract) -> Mask | None:
    who = {contract["principal"], *contract["groups"]}
    return segment.where("principals", lambda readers: readers is not None and who.isdisjoint(readers))


def _principals(contract: Contract, bounds: Bounds) -> Rule:
    names = [contract["principal"], *contract["groups"]]
    return "grants", f"Rows without a list of readers, or with one that names {' or '.join(names)}."


def _a_reader(case: Case) -> Opening:
    readers = case.row["principals"]
    case.contract["groups"] = [*case.contract["groups"], *readers]
    needed = f"that {case.contract['principal']} or one of their groups is among {', '.join(readers) or 'nobody'}"
    return Opening("the row's list of readers", needed, bool(readers))


PRINCIPALS = Gate(
    "principals",
    "access",
    "not_principal",
    "its list of principals, if it has one, names the principal or a group",
    columns=("principals",),
    contract_columns=("principal", "groups"),
    stops=_unlisted,
    explain=_principals,
    remedy=_a_reader,
    canaries=(
        Canary("principals", lambda ground: {"principals": [ground.other_principal]}),
        Canary("nobody", row_of(principals=[])),
    ),
)

# --- how sensitive it is, and of which level -------------------------------------------------------------------------


def _rank(zone: str | None) -> int:
    return ZONES.values.index(zone if zone is not None and zone in ZONES else ZONES.values[-1])


def _above(segment: Any, bound: Mapping[str, Any]) -> Mask | None:
    most = ZONES.values.index(bound["zone"]) if bound["zone"] in ZONES else -1
    return segment.where("zone", lambda zone: _rank(zone) > most)


def _left_out(segment: Any, contract: Contract) -> Mask | None:
    return segment.where("zone", lambda zone: ZONES.values[_rank(zone)] in contract["excluded_zones"])


def _zone(contract: Contract, bounds: Bounds) -> Rule:
    zones = ", ".join(sorted({f"{bound['zone']} in {bound['project']}" for bound in bounds}))
    excluded = contract["excluded_zones"]
    rules = [granted_by(bounds), *by_mode(contract, excluded)]
    return ", ".join(rules), f"Rows up to zone {zones}{f', but none of {listed(excluded)}' if excluded else ''}."


def _a_zone(case: Case) -> Opening:
    zone = ZONES.values[_rank(case.row["zone"])]
    granted = sorted({bound["zone"] for bound in case.here()}, key=ZONES.values.index)
    rules, needed = [], []
    if zone in case.contract["excluded_zones"]:
        rules.append(f"mode {case.contract['mode']}: not {zone}")
        needed.append(f"a mode that leaves zone {zone} in")
    if _rank(granted[-1]) < _rank(zone):
        rules.append(case.rules())
        needed.append(f"a grant up to zone {zone}, in place of {', '.join(granted)}")
    case.contract["excluded_zones"] = []
    case.grant(zone=zone)
    return Opening(", ".join(rules), " and ".join(needed))


ZONE = Gate(
    "zone",
    "access",
    "denied_zone",
    "its zone is at most the one granted in its project, and none the mode leaves out",
    columns=("zone",),
    contract_columns=("excluded_zones",),
    stops=_left_out,
    bound_stops=_above,
    explain=_zone,
    remedy=_a_zone,
    canaries=(
        Canary("zone", lambda ground: None if ground.zone == "restricted" else {"zone": "restricted"}),
        Canary(LEFT_OUT, lambda ground: None if ground.zone == "public" else {"zone": "public"}, angles=(GUIDED,)),
    ),
)


def _a_level(case: Case) -> Opening:
    level = case.row["level"].lower()
    case.contract["excluded_levels"] = []
    return Opening(f"mode {case.contract['mode']}: not {level}", f"a mode that leaves level {level} in")


LEVEL = Gate(
    "level",
    "access",
    "level_excluded",
    "its level is none that the mode leaves out",
    columns=("level",),
    contract_columns=("excluded_levels",),
    stops=lambda segment, contract: segment.where(
        "level", lambda level: level is not None and level.lower() in contract["excluded_levels"]
    ),
    explain=chosen("excluded_levels", "mode {mode}", "Every level.", "No row of level {}.", listed),
    remedy=_a_level,
    canaries=(Canary("level", row_of(level="task"), angles=(GUIDED,)),),
)

# --- where it was read -----------------------------------------------------------------------------------------------


def _of_other_source(segment: Any, *lists: Sequence[str] | None) -> Mask | None:
    """Rows whose source one of the lists of allowances, where it is given, does not allow."""
    masks = [~segment.picked(selectors) for selectors in lists if selectors is not None]
    return np.logical_or.reduce(masks) if masks else None


def _of_source(segment: Any, selectors: Sequence[str]) -> Mask | None:
    return segment.picked(selectors) if selectors else None


def _own_sources(ground: Ground) -> Mapping[str, Any]:
    own = sorted({ground.seen["source_id"], *sorted(ground.sources)[:_SOURCES]})
    return {"allowed_sources": [*map(literal, own), _DENIED]}


def _no_denial_of_source(field: str, rule: str, needed: str) -> Remedy:
    def opened(case: Case) -> Opening:
        source = pa.array([case.row["origin_class"]]), pa.array([case.row["source_id"]])
        matching = [selector for selector in case.contract[field] if selected([selector], *source)[0]]
        case.contract[field] = []
        said = f"{rule.format(**case.contract)}: {most_specific(matching)}"
        return Opening(said, needed.format(", ".join(sorted(matching))))

    return opened


SOURCE_ALLOW = Gate(
    "source_allow",
    "access",
    "out_of_scope_source",
    "grants and request both allow its source",
    columns=("source_id", "origin_class"),
    contract_columns=("allowed_sources", "role_sources"),
    stops=lambda segment, contract: _of_other_source(segment, contract["allowed_sources"], contract["role_sources"]),
    bound_stops=lambda segment, bound: _of_other_source(segment, bound["sources"]),
    explain=allowed("sources", "allowed_sources", "role", "role_sources"),
    remedy=allowance("sources", "allowed_sources", "role", "role_sources", "source_id"),
    canaries=(Canary("source_allow", row_of(source_id="leak-test:unlisted"), _own_sources, (BOUNDED,)),),
)
SOURCE_DENY = Gate(
    "source_deny",
    "access",
    "denied_source",
    "no denied source matches it",
    columns=("source_id", "origin_class"),
    contract_columns=("denied_sources",),
    stops=lambda segment, contract: _of_source(segment, contract["denied_sources"]),
    explain=chosen("denied_sources", "request.denied_sources", "Denies none.", "No source that matches {}.", in_words),
    remedy=_no_denial_of_source("denied_sources", "request.denied_sources", "no denial of {}"),
    canaries=(Canary("source_deny", row_of(source_id=_DENIED), asks(denied_sources=[_DENIED]), (BOUNDED,)),),
)
ROLE_SOURCE = Gate(
    "role_source",
    "visibility",
    "forbidden_source",
    "the role forbids no source that matches it",
    columns=("source_id", "origin_class"),
    contract_columns=("role", "forbidden_sources"),
    stops=lambda segment, contract: _of_source(segment, contract["forbidden_sources"]),
    explain=chosen("forbidden_sources", "role {role}", "Forbids none.", "No source that matches {}.", in_words),
    remedy=_no_denial_of_source("forbidden_sources", "role {role}", "a role that does not forbid its source"),
    canaries=(Canary("role_source", row_of(source_id="leak-test:forbidden"), angles=(GUIDED,)),),
)

# --- under which path ------------------------------------------------------------------------------------------------


def _off_path(segment: Any, *lists: Sequence[str] | None) -> Mask | None:
    """Rows whose path one of the lists of allowances, where it is given, does not allow."""
    masks = [~segment.on(globs, pathless=allows_pathless(globs)) for globs in lists if globs is not None]
    return np.logical_or.reduce(masks) if masks else None


def _on_denied(segment: Any, globs: Sequence[str]) -> Mask | None:
    return segment.on(globs, pathless=denies_pathless(globs)) if globs else None


PATH_ALLOW = Gate(
    "path_allow",
    "access",
    "out_of_scope_path",
    "grants, mode and request all allow its path",
    columns=("path",),
    contract_columns=("allowed_paths", "search_paths"),
    stops=lambda segment, contract: _off_path(segment, contract["allowed_paths"], contract["search_paths"]),
    bound_stops=lambda segment, bound: _off_path(segment, bound["paths"]),
    explain=allowed("paths", "allowed_paths", "mode", "search_paths"),
    remedy=allowance("paths", "allowed_paths", "mode", "search_paths", "path"),
    canaries=(
        Canary(
            "unsearched path",
            lambda ground: {"path": f"{ground.folder}leak-test-unsearched/{{token}}"},
            angles=(GUIDED,),
        ),
    ),
)


def _path_deny(contract: Contract, bounds: Bounds) -> Rule:
    by_grant = [bound for bound in bounds if bound["denied_paths"]]
    of_grants = (glob for bound in by_grant for glob in bound["denied_paths"])
    globs = sorted({*contract["denied_paths"], *contract["excluded_paths"], *of_grants})
    rules = [*(bound["rule_id"] for bound in by_grant), *(["request.denied_paths"] if contract["denied_paths"] else []),
             *by_mode(contract, contract["excluded_paths"])]  # fmt: skip
    if not globs:
        return "", "Denies none."
    also = ", and no row without a path" if denies_pathless(globs) else ""
    return ", ".join(rules), f"No path that matches {in_words(globs)}{also}."


def _no_denial_of_path(case: Case) -> Opening:
    path = pa.array([case.row["path"]])
    asked = [("request.denied_paths", glob) for glob in case.contract["denied_paths"]]
    asked += [(f"mode {case.contract['mode']}", glob) for glob in case.contract["excluded_paths"]]
    rules = [*asked, *((bound["rule_id"], glob) for bound in case.here() for glob in bound["denied_paths"])]
    matching = {glob: rule for rule, glob in rules if glob_mask(path, [glob], pathless=denies_pathless([glob]))[0]}
    case.contract |= {"denied_paths": [], "excluded_paths": []}
    case.grant(denied_paths=[])
    first = most_specific(matching)
    return Opening(f"{matching[first]}: {first}", f"no denial of {', '.join(sorted(matching))}")


def _denials(ground: Ground) -> Mapping[str, Any]:
    folder = literal(ground.folder)
    guarded = [f"{folder}leak-test-guarded/"] if ground.seen["path"] else []
    return {"denied_paths": [f"path:{folder}leak-test-denied/", *guarded]}


PATH_DENY = Gate(
    "path_deny",
    "access",
    "denied_path",
    "no denied path matches its own",
    columns=("path",),
    contract_columns=("denied_paths", "excluded_paths"),
    stops=lambda segment, contract: _on_denied(segment, [*contract["denied_paths"], *contract["excluded_paths"]]),
    bound_stops=lambda segment, bound: _on_denied(segment, bound["denied_paths"]),
    explain=_path_deny,
    remedy=_no_denial_of_path,
    canaries=(
        Canary(
            "path_deny", lambda ground: {"path": f"{ground.folder}leak-test-denied/{{token}}.md"}, _denials, (BOUNDED,)
        ),
        Canary(NO_PATH, lambda ground: {"path": None} if ground.seen["path"] else None, _denials, (BOUNDED,)),
    ),
)

# --- what a request narrows by one name ------------------------------------------------------------------------------


def _named(field: str, reason_code: str, what: str, **own: Any) -> Gate:
    gate = Gate(
        field,
        "access",
        reason_code,
        f"it has no {what} or the request's",
        columns=(field,),
        contract_columns=(field,),
        stops=lambda segment, contract: segment.where(
            field, lambda name: None not in (name, contract[field]) and name != contract[field]
        ),
        explain=_by_name(field, what),
        remedy=_that_name(field),
        canaries=(
            Canary(
                field,
                row_of(**{field: "leak-test-elsewhere"}),
                lambda ground: {field: ground.seen.get(field) or f"leak-test-{field}"},
                (BOUNDED,),
            ),
        ),
    )
    return replace(gate, **own)


def _by_name(field: str, what: str) -> Explain:
    return chosen(field, f"request.{field}", f"Every {what}.", f"Rows of {what} {{}}, and those without one.")


def _that_name(field: str) -> Remedy:
    return lifted(
        field, lambda row: row[field], lambda old, row: (f"request.{field}: {old or 'none'}", f"{field} {row[field]}")
    )


def _namespace_not_granted(segment: Any, bound: Mapping[str, Any]) -> Mask | None:
    names = bound["namespaces"]
    return None if names is None else segment.where("namespace", lambda name: name is not None and name not in names)


def _namespaces(contract: Contract, bounds: Bounds) -> Rule:
    if contract["namespace"] is not None or all(bound["namespaces"] is None for bound in bounds):
        return _by_name("namespace", "namespace")(contract, bounds)
    names = sorted({name for bound in bounds for name in bound["namespaces"] or ()})
    return granted_by(bounds), f"Rows of the namespaces {listed(names)}, and those without one."


def _that_namespace(case: Case) -> Opening:
    name, asked = case.row["namespace"], case.contract["namespace"]
    refused = all(bound["namespaces"] is not None and name not in bound["namespaces"] for bound in case.here())
    case.grant(namespaces=None)
    found = [Opening(case.rules(), f"a grant with namespaces: [{name}]")] if refused else []
    found += [_that_name("namespace")(case)] if asked not in (None, name) else []
    return Opening(", ".join(each.rule for each in found), " and ".join(each.needed for each in found))


NAMESPACE = _named(
    "namespace",
    "wrong_namespace",
    "namespace",
    bound_stops=_namespace_not_granted,
    explain=_namespaces,
    remedy=_that_namespace,
)
BRANCH = _named("branch", "wrong_branch", "branch")
TEST_SUITE = _named("test_suite", "wrong_test_suite", "test suite")
WORKSPACE = Gate(
    "workspace",
    "access",
    "wrong_workspace",
    "it has no work tree or the request's, whose text shadows others of its path",
    columns=("workspace_root", "owner_project", "owner_user", "source_id", "path"),
    contract_columns=("workspace_root",),
    stops=lambda segment, contract: segment.where(
        "workspace_root", lambda root: root not in (None, contract["workspace_root"])
    ),
    explain=chosen(
        "workspace_root", "request.workspace_root", "Commits, and files as they were when they were read.",
        "Uncommitted text of {} in place of other text of the same path.",
    ),
    remedy=_that_name("workspace_root"),
    canaries=(
        Canary("uncommitted", row_of(workspace_root=f"{ROOT}-elsewhere"), angles=(OPEN,)),
        Canary("workspace", row_of(workspace_root=f"{ROOT}-elsewhere"), asks(workspace_root=ROOT), (BOUNDED,)),
    ),
)  # fmt: skip
"""It stops committed text that a work tree shadows, too. That depends on other rows, so the step `boundary_gates` does it
after every row is judged."""

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

VISIBILITY = Gate(
    "visibility",
    "visibility",
    "not_model_visible",
    "it may enter model input",
    columns=("declared_visibility",),
    stops=lambda segment, contract: segment.where("declared_visibility", lambda word: word != "model-visible"),
    explain=always("Rows that were declared model-visible."),
    remedy=declared("declared_visibility", "model-visible"),
    canaries=(Canary("visibility", row_of(declared_visibility="runtime-only")),),
    hides=True,
)


def _state(word: str | None) -> str:
    return word if word is not None and word in LIFECYCLES else "candidate"


def _lifecycle(contract: Contract, bounds: Bounds) -> Rule:
    limits = [bound["rule_id"] for bound in bounds if bound["states"] is not None]
    rules = [f"purpose {contract['purpose']}", *limits]
    return ", ".join(rules), f"Rows that are {listed(contract['include_states'])}."


def _a_state(case: Case) -> Opening:
    state = case.row["lifecycle"] or "candidate"
    if state == "revoked":
        return Opening("the row", "a row that was not revoked; no contract shows this one", False)
    case.contract["include_states"] = [*case.contract["include_states"], state]
    case.grant(states=None)
    by_request = {"candidate": "max_unverified_items above 0", "verified": "a purpose that shows verified rows"}
    needed = f"{by_request.get(state, 'allow_stale_memory')}, and grants whose states have {state}"
    return Opening(case.rules(), needed)


LIFECYCLE = Gate(
    "lifecycle",
    "visibility",
    "lifecycle_excluded",
    "its state is one the contract includes",
    columns=("lifecycle",),
    contract_columns=("include_states",),
    stops=lambda segment, contract: segment.where(
        "lifecycle", lambda word: _state(word) not in contract["include_states"]
    ),
    bound_stops=lambda segment, bound: segment.where(
        "lifecycle", lambda word: bound["states"] is not None and _state(word) not in bound["states"]
    ),
    explain=_lifecycle,
    remedy=_a_state,
    canaries=(Canary("revoked", row_of(lifecycle="revoked")),),
)
SAFETY = Gate(
    "safety",
    "visibility",
    "safety_blocked",
    "it is not blocked",
    columns=("declared_safety",),
    stops=lambda segment, contract: segment.where("declared_safety", lambda word: word == "blocked"),
    explain=always("Rows that are not blocked."),
    remedy=declared("declared_safety", "safe"),
    canaries=(Canary("safety", row_of(declared_safety="blocked")),),
    hides=True,
)
ROLE = Gate(
    "role",
    "visibility",
    "role_mismatch",
    "it does not exclude the role",
    columns=("excluded_roles",),
    contract_columns=("role",),
    stops=lambda segment, contract: segment.where("excluded_roles", lambda roles: contract["role"] in (roles or ())),
    explain=chosen("role", "role {role}", "Every row.", "Rows that do not exclude {}."),
    remedy=lifted(
        "role",
        lambda row: None,
        lambda old, row: (f"role {old}", f"a role that is none of {', '.join(row['excluded_roles'])}"),
    ),
    canaries=(Canary("role", row_of(excluded_roles=[LEAK_TEST]), angles=(GUIDED,)),),
)


def _unaccepted(segment: Any, contract: Contract) -> Mask | None:
    accepted = contract["accepted_authority"]
    if accepted is None:
        return None
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


ACCEPTED_AUTHORITY = Gate(
    "accepted_authority",
    "visibility",
    "authority_not_accepted",
    "its class of source is accepted",
    columns=("origin_class", "lifecycle"),
    contract_columns=("accepted_authority",),
    stops=_unaccepted,
    explain=chosen("accepted_authority", "request.accepted_authority", "Every class.", "Only {}.", listed),
    remedy=lifted(
        "accepted_authority",
        lambda row: None,
        lambda old, row: (
            f"request.accepted_authority: {', '.join(old)}", f"acceptance of {row['origin_class']} evidence"
        ),
    ),
    canaries=(Canary("accepted_authority", _of_no_class, asks(accepted_authority=[*ACCEPTED_ORIGINS]), (BOUNDED,)),),
)  # fmt: skip
MIN_AUTHORITY = Gate(
    "min_authority",
    "visibility",
    "authority_below_min",
    "its authority is at least the contract's",
    columns=("authority",),
    contract_columns=("min_authority",),
    stops=lambda segment, contract: segment.where("authority", lambda rank: (rank or 0) < contract["min_authority"]),
    explain=chosen("min_authority", "request.min_authority", "Every authority.", "Authority {} and above."),
    remedy=lifted(
        "min_authority",
        lambda row: row["authority"] or 0,
        lambda old, row: (f"request.min_authority: {old}", f"min_authority {row['authority'] or 0} or less"),
    ),
    canaries=(Canary("min_authority", row_of(authority=0), asks(min_authority=1), (BOUNDED,)),),
)

# --- when: one kernel over (row, instant) pairs, `time_gates`, judges these, because a batch has thousands of instants ------

_FAR, _DAY = timedelta(days=36_500), timedelta(days=1)


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


def _at_instant(name: str, reason_code: str, doc: str, says: str, column: str, days: int) -> Gate:
    """A gate that `as_of` closes; its canary has an instant some days from that of the request."""

    def rule(contract: Contract, bounds: Bounds) -> Rule:
        if contract["include_deleted"] and name in ("superseded", "deleted"):
            return f"mode {contract['mode']}", "What had ended too, as history."
        return "as_of", says.format(_instant(contract["as_of"]))

    canary = Canary(name, lambda ground: {column: ground.as_of + days * _DAY})
    return Gate(name, "time", reason_code, doc, explain=rule, remedy=_another_instant, canaries=(canary,))


def _bounds_of(ground: Ground) -> tuple[datetime, datetime]:
    return ground.as_of - _FAR, ground.as_of - timedelta(hours=3)


def _asked_window(ground: Ground) -> Mapping[str, Any]:
    start, end = _bounds_of(ground)
    return {"time": {"include_after": start.isoformat(), "exclude_after": end.isoformat()}}


def _in_window(
    name: str, reason_code: str, doc: str, says: str, event: Callable[[datetime, datetime], datetime]
) -> Gate:
    explain = chosen(name, "request.time", "Open.", says, datetime.isoformat)
    canary = Canary(name, lambda ground: {"event_time": event(*_bounds_of(ground))}, _asked_window, (BOUNDED,))
    return Gate(name, "time", reason_code, doc, explain=explain, remedy=_another_window, canaries=(canary,))


_TIMES = (
    _at_instant("recorded", "after_as_of", "it was recorded at or before as_of", "Rows recorded by {}.", "recorded_time", 1),
    _at_instant("superseded", "superseded", "no other text had taken its place at as_of",
                "Rows that no other text had replaced by {}.", "superseded_at", -1),
    _at_instant("deleted", "deleted", "it was not removed at as_of", "Rows that were not removed by {}.", "deleted_at", -1),
    _at_instant("valid_from", "not_yet_valid", "its validity has begun at as_of",
                "Rows whose validity had begun by {}.", "valid_from", 1),
    _at_instant("valid_until", "expired", "its validity has not ended at as_of",
                "Rows whose validity had not ended by {}.", "valid_until", -1),
    _in_window("window_start", "before_window", "it did not happen before the window", "Rows that happened from {} on.",
               lambda start, end: start - _DAY),
    _in_window("window_end", "after_window", "it happened before the window's end", "Rows that happened before {}.",
               lambda start, end: end + timedelta(hours=1)),
)  # fmt: skip

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
