"""Requests and answers of the servers, as pydantic types.

Reads: the declared tables. Gives: the types of every answer, `RetrievalRequest`, and `request_field`, one field of it. Columns, types
and docs are those of `nodes/tables/`; nothing restates them.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from ...nodes import vocabulary as v
from ...nodes.schema import Column, Table
from ...nodes.tables import CITATIONS, CONDITIONS, REQUESTS, SNAPSHOTS
from ..parsing.documents import ABSENT
from ..redaction.masking import redact_text
from ..requests.fields import FIELDS
from ..views.recall_xray import RecallXraySnapshot
from .appending import NewRow

_WORDS: dict[str, v.Vocabulary] = {
    "purpose": v.PURPOSES,
    "mode": v.MODES,
    "recall_effort": v.RECALL_EFFORTS,
    "intent_source": v.INTENT_SOURCES,
    "merge_policy": v.MERGE_POLICIES,
    "output_shape": v.OUTPUT_SHAPES,
}
"""Closed lists of request fields; a schema lists their values, and requests may also use their aliases."""


def _python_type(type_: pa.DataType) -> Any:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return list[_python_type(type_.value_type)]
    if pa.types.is_boolean(type_):
        return bool
    if pa.types.is_integer(type_):
        return int
    if pa.types.is_floating(type_):
        return float
    return datetime if pa.types.is_timestamp(type_) else str


def _field(column: Column, *, required: bool) -> tuple[Any, Any]:
    type_ = _python_type(column.type)
    described = Field(description=column.doc) if required else Field(default=None, description=column.doc)
    return (type_ | None if column.nullable or not required else type_), described


def row_type(table: Table, *only: str, without: tuple[str, ...] = ("request_id",), base: Any = BaseModel) -> Any:
    """The type of a row of a declared table, or of some of its columns: those for callers are required, those for auditors
    optional.
    """
    fields: dict[str, Any] = {
        name: _field(column, required=column.audience == "caller")
        for name, column in table.columns.items()
        if name not in without and name in (only or table.columns)
    }
    name = "".join(part.capitalize() for part in table.name.split("_")).removesuffix("s")
    return create_model(name, __base__=base, __doc__=table.doc, **fields)


def request_field(name: str) -> tuple[Any, Any]:
    """The type and the description of a field of a request, as JSON has it; all are optional."""
    column = REQUESTS.columns[name]
    type_ = str if pa.types.is_timestamp(column.type) else _python_type(column.type)
    if name in _WORDS:
        type_ = Literal[tuple(_WORDS[name].values)]
    elif name in ("variables", "state", "weights"):
        type_ = dict[str, Any] | str
    return type_, Field(default=None, description=column.doc)


if TYPE_CHECKING:
    RetrievalRequest = BaseModel
    CitedPlace = StatedCondition = BaseModel
    Citation = BaseModel
    Condition = BaseModel
    SnapshotRow = BaseModel
else:
    RetrievalRequest = create_model(
        "RetrievalRequest",
        __config__=ConfigDict(extra="allow"),
        __doc__="A retrieval request. The names of the specification documents, in groups and in camel case, are accepted, too.",
        **{name: request_field(name) for name in FIELDS},
    )
    Citation = row_type(CITATIONS)
    CitedPlace = row_type(CITATIONS, "label", "evidence_id", "path", "locator")
    Condition = row_type(CONDITIONS)
    StatedCondition = row_type(CONDITIONS, "condition", "action", "message")

    class _Asked(BaseModel):
        """What a list says of the request of a snapshot."""

        model_config = ConfigDict(extra="allow")
        question: str | None = None
        project: str | None = None
        purpose: str | None = None
        session_id: str | None = None
        as_of: datetime | None = None

    SnapshotRow = row_type(SNAPSHOTS, without=(), base=_Asked)


class Problem(BaseModel):
    """Why a request was not answered; `message` names what was expected, what came, where, and every valid option."""

    error: str = Field(description="the kind of problem, in words")
    code: str = Field(description="the kind of problem, for programs")
    message: Annotated[str, AfterValidator(redact_text)]
    hint: Annotated[str, AfterValidator(redact_text)] | None = Field(default=None, description="what to do")
    at: Annotated[str, AfterValidator(redact_text)] | None = Field(
        default=None, description="where, if it is one place"
    )
    choices: list[str] | None = Field(default=None, description="every valid value, if they are few")
    trace_id: str | None = Field(default=None, description="names the request in the log of the server")


class Answer(BaseModel):
    """One retrieval, as its caller may see it."""

    snapshot_id: str | None
    block_ref: str | None
    status: str = Field(description="ok, empty, denied, partial or failed; a refusal is no error")
    conditions: list[Condition]
    citations: list[Citation]
    event: dict[str, Any] = Field(description="for the event log of a harness: ids, a count and a hash, no text")
    block: str | None = Field(
        description="what the model may read; empty where nothing may leave, null where it was erased"
    )
    action: str = Field(description="continue, warn, degrade or block")


class Shown(BaseModel):
    """What a model needs beside the text of a block: its ids, citations and conditions; the rest is in its snapshot."""

    snapshot_id: str | None
    block_ref: str | None
    status: str = Field(description="ok, empty, denied, partial or failed; a refusal is no error")
    conditions: list[StatedCondition]
    citations: list[CitedPlace]


class Appending(BaseModel):
    """Rows of the principal's own, to be added."""

    model_config = ConfigDict(extra="forbid", strict=True)
    rows: list[NewRow] = Field(min_length=1)
    project: str = Field(default=ABSENT, description="the project that they belong to; default: the server's")


class Appended(BaseModel):
    """Rows that were added."""

    project: str
    evidence_ids: list[str] = Field(description="one per row, in the order given; the same row has the same id")
    masked: int = Field(ge=0, description="rows in which a secret was masked")


class Answers(BaseModel):
    """One result per request, in their order."""

    results: list[Answer | Problem]


class Envelope(BaseModel):
    """The x-ray of document 002."""

    snapshotFound: bool  # noqa: N815 - document 002's name
    snapshot: RecallXraySnapshot | None = None


class Snapshots(BaseModel):
    """Snapshots that the principal may read, oldest first."""

    snapshots: list[SnapshotRow]
    left_out: int = Field(ge=0, description="number of damaged runs, not listed, that the principal may know of")


class Reason(BaseModel):
    """Where one row was lost, or that it is shown."""

    model_config = ConfigDict(extra="allow")
    evidence_id: str
    source_id: str | None
    path: str | None
    outcome: str
    stage: str
    decided_by: str | None
    reason_code: str
    reason_text: str
    rules: list[str]
    would_admit: list[str]


class Why(BaseModel):
    """The rows that a name means."""

    rows: list[Reason]


class Health(BaseModel):
    """The server answers, and its corpus and runs can be opened."""

    status: str
    version: str


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model as one object, without titles and defaults that are absent: models read all of it."""
    whole = model.model_json_schema()

    def terse(schema: dict[str, Any]) -> dict[str, Any]:
        if reference := schema.get("$ref"):
            return terse(whole["$defs"][reference.rpartition("/")[2]])
        found = {key: value for key, value in schema.items() if key not in ("title", "$defs") and value is not None}
        if "properties" in found:
            found["properties"] = {name: terse(each) for name, each in found["properties"].items()}
        if "items" in found:
            found["items"] = terse(found["items"])
        return found

    return terse(whole)
