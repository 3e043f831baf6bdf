"""Import rows: null rules, defaults, vocabularies, times, and masking before anything is stored."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.sources.records import read_evidence
from scoped_retrieval.pipeline.sources.report import PLACE, SourceReport

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(days=3)
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def rows(*given_rows: dict) -> pa.Table:
    names = dict.fromkeys(name for row in given_rows for name in row)
    return pa.table({name: [row.get(name) for row in given_rows] for name in names})


def evidence(path, report: SourceReport | None = None) -> pa.Table:
    (table,) = read_evidence(path, report=report or SourceReport())
    return table.drop_columns([PLACE])


def imported(*given_rows: dict, **kind) -> list[dict]:
    table, _ = normalize(rows(*given_rows), project="shop", principal="ana", now=NOW, **kind)
    return table.to_pylist()


def of_class(origin_class: str, **fields) -> dict:
    return imported({"source_id": "a:b", "text": "some text", "origin_class": origin_class, **fields})[0]


@pytest.mark.parametrize(
    ("origin_class", "kind", "authority", "lifecycle", "standing"),
    [
        ("workspace", "code", 1, "verified", "evidence"),
        ("project-doc", "doc", 1, "verified", "evidence"),
        ("team-standard", "rule", 1, "verified", "evidence"),
        ("decision-record", "decision-record", 1, "verified", "evidence"),
        ("memory", "memory", 1, "candidate", "hint"),
        ("session-event", "session-event", 1, "verified", "untrusted"),
        ("artifact", "tool-output", 1, "verified", "untrusted"),
        ("external", "doc", 0, "verified", "untrusted"),
    ],
)
def test_defaults_per_class_of_source(
    origin_class: str, kind: str, authority: int, lifecycle: str, standing: str
) -> None:
    row = of_class(origin_class)
    assert (row["evidence_kind"], row["authority"], row["lifecycle"], row["declared_standing"]) == (
        kind, authority, lifecycle, standing,
    )  # fmt: skip
    assert row["zone"] == "internal"


def test_a_log_of_the_workspace_is_untrusted() -> None:
    row = of_class("workspace", path="logs/pytest.log")
    assert (row["evidence_kind"], row["declared_standing"]) == ("test-log", "untrusted")


@pytest.mark.parametrize("origin_class", ["memory", "session-event", "user-preference"])
def test_what_belongs_to_a_user_becomes_the_principals(origin_class: str) -> None:
    assert of_class(origin_class)["owner_user"] == "ana"
    assert of_class(origin_class, owner_user="ben")["owner_user"] == "ben"
    assert of_class(origin_class, owner_user="")["owner_user"] is None


def test_a_text_without_version_and_place_is_its_own_version() -> None:
    same, other, placed, named = imported(
        {"source_id": "a:b", "path": "a.md", "text": "x"},
        {"source_id": "a:b", "path": "b.md", "text": "y"},
        {"source_id": "a:b", "path": "c.md", "text": "x", "line_start": 3},
        {"source_id": "a:b", "path": "d.md", "text": "x", "version": "v7"},
    )
    assert same["version"] == "sha256:2d711642b726b044"
    assert other["version"] not in (None, same["version"])
    assert (placed["version"], named["version"]) == (None, "v7")


def test_a_version_tells_nothing_of_a_secret() -> None:
    keys = [f"token AKIA{letter * 16}" for letter in "BC"]
    first, second = imported(*({"source_id": "a:b", "text": key} for key in keys))
    assert first["version"] == second["version"]


def test_a_row_says_its_project_or_gets_that_of_the_import() -> None:
    first, second = imported(
        {"source_id": "a:b", "text": "x", "owner_project": "billing"}, {"source_id": "a:b", "text": "x"}
    )
    assert (first["owner_project"], second["owner_project"]) == ("billing", "shop")


@pytest.mark.parametrize(
    ("fields", "origin_class"),
    [
        ({"source_id": "workspace:shop"}, "workspace"),
        ({"source_id": "session:s-1"}, "session-event"),
        ({"source_id": "notes", "evidence_kind": "decision"}, "decision-record"),
        ({"source_id": "notes"}, "project-doc"),
    ],
)
def test_a_missing_class_is_told_from_source_then_kind(fields: dict, origin_class: str) -> None:
    assert imported({"text": "x", **fields})[0]["origin_class"] == origin_class


def test_the_recorded_time_is_the_events_where_events_are_recorded_as_they_happen() -> None:
    assert of_class("memory", event_time=EARLIER)["recorded_time"] == EARLIER
    assert of_class("session-event", event_time=EARLIER)["recorded_time"] == EARLIER
    assert of_class("memory", event_time=NOW + timedelta(days=1))["recorded_time"] == NOW
    assert of_class("workspace", event_time=EARLIER)["recorded_time"] == NOW
    assert of_class("memory")["recorded_time"] == NOW


@pytest.mark.parametrize(
    "column",
    [pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), pa.array(["2026-01-01T00:00:00"]), pa.array(["2026-01-01"])],
    ids=["timestamp", "text", "date"],
)
def test_a_naive_time_is_rejected(column: pa.Array) -> None:
    table = pa.table({"source_id": ["a:b"], "text": ["x"], "event_time": column})
    with pytest.raises(InputError, match=r"Expected a time with an offset, .* got .* - at rows\[0\].event_time"):
        normalize(table, project="shop", principal="ana", now=NOW)


@pytest.mark.parametrize(
    ("name", "column", "message"),
    [
        ("recorded_time", [None, {"a": 1}], r"timestamp\[us, tz=UTC\], got struct - at rows\[1\]"),
        ("authority", [None, {"a": 1}], r"int32, got struct - at rows\[1\]"),
        ("tags", pa.array([None, [("a", 1)]], pa.map_(pa.string(), pa.int64())), r"list of string, got map - at rows\[1\]"),
        ("line_start", [NOW.date(), None], r"int32, got date32\[day\] - at rows\[0\]"),
        ("line_start", [1, 2**40], r"int32, got int64 .* - at rows\[1\]"),
        ("generated", [0.0, 1.0], r"bool, got double - at rows\[0\]"),
        ("importance", [True, False], r"double, got bool - at rows\[0\]"),
        ("version", [None, b"x"], r"string, got binary - at rows\[1\]"),
    ],
)  # fmt: skip
def test_a_column_of_another_kind_is_refused_by_name_type_and_first_row(name: str, column, message: str) -> None:
    table = pa.table({"source_id": ["a:b", "a:b"], "text": ["x", "y"], name: column})
    with pytest.raises(InputError, match=f"Expected {message}.{name}"):
        normalize(table, project="shop", principal="ana", now=NOW)


def test_states_of_other_documents_are_mapped() -> None:
    given_states = ["active", "pending", "superseded", "forgotten", "conflicted", "private", "curious"]
    table, report = normalize(
        rows(*({"source_id": "memory:m", "text": s, "entity": s, "lifecycle": s} for s in given_states)),
        project="shop", principal="ana", now=NOW,
    )  # fmt: skip
    assert table["lifecycle"].to_pylist() == [
        "verified", "candidate", "deprecated", "revoked", "verified", "verified", "candidate",
    ]  # fmt: skip
    assert table["conflict_set"].to_pylist()[4] == "conflict:conflicted"
    note = "a state that is not one of candidate, verified, deprecated, expired, revoked counts as candidate"
    assert report.notes == {note: ["rows[6]"]}


def test_a_private_row_of_any_class_belongs_to_the_principal() -> None:
    assert of_class("project-doc", lifecycle="private")["owner_user"] == "ana"
    assert of_class("project-doc", lifecycle="private", owner_user="")["owner_user"] == "ana"
    assert of_class("project-doc", lifecycle="private", owner_user="bob")["owner_user"] == "bob"


def test_an_unknown_zone_is_an_error_that_lists_the_zones() -> None:
    with pytest.raises(
        InputError, match=r"Expected one of public, internal, private, restricted, got 'secret' - at rows\[1\].zone"
    ):
        imported(
            {"source_id": "a:b", "text": "x", "zone": "public"}, {"source_id": "a:b", "text": "y", "zone": "secret"}
        )
    assert of_class("workspace", zone="confidential")["zone"] == "private"


@pytest.mark.parametrize(("given_authority", "rank"), [(3, 3), ("high", 2), ("authoritative", 3), ("0", 0)])
def test_authority_is_a_rank_or_a_word(given_authority: object, rank: int) -> None:
    assert of_class("workspace", authority=given_authority)["authority"] == rank


def test_content_cannot_call_itself_an_instruction() -> None:
    assert of_class("external", declared_standing="instruction")["declared_standing"] == "evidence"


def test_rows_without_text_are_skipped_and_messages_still_name_the_row() -> None:
    table, report = normalize(
        rows({"source_id": "a:b", "text": " \n"}, {"source_id": "a:b", "text": None}, {"source_id": "a:b", "text": "x"}),
        project="shop", principal="ana", now=NOW,
    )  # fmt: skip
    assert table.num_rows == 1
    assert report.skipped == {"empty text": 2}
    with pytest.raises(InputError, match=r"at rows\[1\].zone"):
        imported({"source_id": "a:b", "text": ""}, {"source_id": "a:b", "text": "x", "zone": "no"})


NAMES = ("source_id", "owner_project", "owner_user", "namespace", "workspace_root", "branch", "session_id", "test_suite",
         "principals")  # fmt: skip
CLOSED = (
    "origin_class",
    "evidence_kind",
    "zone",
    "lifecycle",
    "declared_visibility",
    "declared_safety",
    "declared_standing",
)


KEYS = ("entity", "parent_id", "superseded_by", "supersedes", "conflict_set")


def test_only_names_that_bounds_compare_are_stored_as_given() -> None:
    kept = (*NAMES, *CLOSED, *KEYS)
    types = {name: column.type for name, column in IMPORT_ROWS.columns.items() if name not in kept}
    said = dict.fromkeys((name for name in types if types[name] == pa.string()), TOKEN)
    said |= {name: ["plain", TOKEN] for name in types if types[name] == pa.list_(pa.string())}
    assert {"uri", "domain", "document_type", "version", "tags", "applicable_roles"} <= said.keys()
    row = of_class("workspace", text="x", **said)
    assert [name for name in said if TOKEN in str(row[name])] == []
    assert (row["uri"], row["tags"]) == ("[REDACTED:github-token]", ["plain", "[REDACTED:github-token]"])


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("secret", [TOKEN, "pwd=Sommer2024A"])
def test_a_secret_in_a_key_is_refused_by_line_and_never_made_alike(key: str, secret: str) -> None:
    named = (lambda value: [value]) if key == "supersedes" else str
    given = [{"source_id": "a:b", "text": text, key: named("m1")} for text in ("", "x")]
    given.append({"source_id": "a:b", "text": "y", key: named(secret), PLACE: "rows.jsonl:3"})
    with pytest.raises(InputError, match=rf"got one with a secret - at rows\.jsonl:3\.{key}") as refused:
        imported(*given)
    assert secret not in str(refused.value)
    assert [row[key] for row in imported(*given[:2])] == [named("m1")]


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_in_a_name_that_bounds_compare_is_refused_by_line(name: str) -> None:
    said = {"owner_project": "shop", "source_id": "a:b", "text": "x"}
    secret: object = ["ana", TOKEN] if name == "principals" else f"a:{TOKEN}" if name == "source_id" else TOKEN
    rows = [{**said, PLACE: "rows.jsonl:1"}, {**said, name: secret, PLACE: "rows.jsonl:2"}]
    with pytest.raises(InputError, match=rf"Expected a name without a secret, .* at rows\.jsonl:2\.{name}") as refused:
        imported(*rows)
    assert TOKEN not in str(refused.value)
    assert len(imported(*rows[:1])) == 1


def test_an_unknown_column_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"(?s)got 'colour' - at rows.*known columns: source_id"):
        imported({"source_id": "a:b", "text": "x", "colour": "red"})


def test_an_unknown_column_that_is_a_secret_is_not_quoted(tmp_path) -> None:
    line = json.dumps({"source_id": "a:b", "text": "x", TOKEN: 1})
    for refused_by in (lambda: evidence(jsonl(tmp_path, line)), lambda: imported(json.loads(line))):
        with pytest.raises(InputError, match=f"<key of {len(TOKEN)} characters>") as refused:
            refused_by()
        assert TOKEN not in str(refused.value)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["memory:m", "external:e", "n"]), st.sampled_from(["x", "", TOKEN]), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 8),
)
def test_chunking_of_the_table_does_not_matter(values: list[tuple[str, str, bool]], size: int) -> None:
    whole = rows(*({"source_id": s, "text": t, "zone": "public" if z else None, "path": s} for s, t, z in values))
    chunked = pa.concat_tables([whole.slice(i, size) for i in range(0, whole.num_rows, size)])
    one, first = normalize(whole, project="shop", principal="ana", now=NOW)
    other, second = normalize(chunked, project="shop", principal="ana", now=NOW)
    assert one.equals(other)
    assert first == second


# --- files of evidence


def jsonl(folder, *lines: str | bytes):
    path = folder / "rows.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def test_parquet_arrow_and_json_lines_give_the_same_rows(tmp_path) -> None:
    path = jsonl(
        tmp_path,
        '{"source_id": "a:b", "text": "x", "event_time": "2026-01-01T00:00:00Z", "authority": 2, "tags": ["t"], "line_start": 3}',
        "",
        '{"source_id": "a:b", "text": "y", "generated": true, "confidence": 0.5}',
    )
    report = SourceReport()
    from_json = evidence(path, report)
    assert report.read == 2
    pq.write_table(from_json, tmp_path / "rows.parquet")
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as sink, pa.ipc.new_file(sink, from_json.schema) as writer:
        writer.write_table(from_json)
    for name in ("rows.parquet", "rows.arrow"):
        assert evidence(tmp_path / name).equals(from_json)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source_id": "a:b"}', r"got nothing - at .*rows.jsonl:2.text"),
        ('{"source_id": "a:b", "text": "x", "tags": ["a", 1]}', r"Expected text, got a number - at .*:2.tags"),
        ('{"source_id": "a:b", "text": "x", "colour": 1}', r"Expected one of source_id, .*got 'colour' - at .*:2"),
        ('{"source_id": "a:b", "text": "x", "authority": 7}', r"Expected one of untrusted, .*got '7' - at .*:2.authority"),
        (b'{"source_id": "a:b", "text": "\xff"}', r"Expected UTF-8 text, got byte 0xff at position \d+ - at .*rows.jsonl:2"),
    ],
)  # fmt: skip
def test_a_malformed_line_is_named_by_file_line_and_field(tmp_path, line: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evidence(jsonl(tmp_path, '{"source_id": "a:b", "text": "x"}', line))


@pytest.mark.parametrize(
    ("source", "origin_class"),
    [
        ("log:ci", "artifact"), ("sessions:s", "session-event"), ("preference:p", "user-preference"),
        ("standard:s", "team-standard"), ("memory:m", "memory"), ("notes:n", "project-doc"),
    ],
)  # fmt: skip
def test_the_prefix_of_a_source_says_its_class(source: str, origin_class: str) -> None:
    assert imported({"source_id": source, "text": "some text"})[0]["origin_class"] == origin_class
