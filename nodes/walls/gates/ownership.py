"""The owner of a row: the gates `project`, `owner` and `principals`.

Note: the first two never stop a row of a segment that is read. Segments of other owners are never opened, see
`boundary_gates`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...tables import CONTRACT_BOUNDS
from ...vocabulary import ZONES
from ..segment_columns import SegmentColumns
from .gate import Bounds, Canary, Case, Contract, Gate, Mask, Opening, Rule, grants, listed, row_of


def _project(contract: Contract, bounds: Bounds) -> Rule:
    return grants(bounds), f"Rows of {listed(sorted({bound['project'] for bound in bounds}))}."


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
    explain=_project,
    remedy=_a_grant,
    canaries=(
        Canary("project", lambda ground: {"owner_project": ground.other_project, "owner_user": ground.principal}),
    ),
)


def _owner(contract: Contract, bounds: Bounds) -> Rule:
    users = sorted({user for bound in bounds for user in bound["users"]})
    return grants(bounds), f"Rows of the whole project, and those of {listed(users)}."


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


def _unlisted(segment: SegmentColumns, contract: Contract) -> Mask | None:
    row, name, with_list = segment.readers
    if not with_list.any():
        return None
    who = pa.array(sorted({contract["principal"], *contract["groups"]}))
    entitled = np.bincount(row[np.asarray(pc.is_in(name, who))], minlength=segment.rows) > 0
    return with_list & ~entitled


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
