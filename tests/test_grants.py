"""Grants files: what they give, exact errors, and the starter entry that `index` writes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.nodes.tables import GRANTS
from scoped_retrieval.pipeline.config.grants import load_grants, write_starter_grants

TOKEN = hashlib.sha256(b"secret").hexdigest()
WHOLE = f"""
principals:
  ana:
    projects: [shop, {{project: pay, zones: private, sources: [session, "git:*"], paths: [src/], expires: 2026-12-31T01:00:00+01:00}}]
    groups: [dev]
    zones: internal
    users: [bob]
    states: [active, deprecated]
    paths: [src/, docs/]
    denied_paths: [src/keys/]
    act_as: [bot, {{principal: cyd, project: shop, expires: 2026-12-31T01:00:00+01:00, reason: holidays}}]
    audit: true
  bob: {{projects: [shop]}}
grants:
  - {{principal: bob, project: platform, zones: restricted, sources: [project-doc], for_projects: [shop], reason: shared rules,
     expires: 2099-01-01T00:00:00Z}}
tokens:
  {TOKEN}: ana
"""


def read(tmp_path: Path, text: str):
    path = tmp_path / "grants.yaml"
    path.write_text(text)
    return load_grants(path)


@pytest.mark.parametrize("missing", ["zones", "reason", "expires"])
def test_a_grant_of_another_project_says_how_far_why_and_until_when(tmp_path, missing: str):
    said = {"zones": "internal", "reason": "shared", "expires": "2099-01-01T00:00:00Z"}
    grant = {"principal": "ana", "project": "pay"} | {name: value for name, value in said.items() if name != missing}
    with pytest.raises(
        PolicyError, match=rf"Expected {missing} of a grant of another project, got nothing in grants\[0\]"
    ):
        read(tmp_path, yaml.safe_dump({"principals": {"ana": {"projects": ["shop"]}}, "grants": [grant]}))


def test_a_file_gives_one_row_per_principal_and_project(tmp_path):
    file = read(tmp_path, WHOLE)
    rows = {row["rule_id"]: row for row in GRANTS.check(file.table).to_pylist()}
    assert list(rows) == [
        "grants[0]",
        "principals.ana.act_as[0]",
        "principals.ana.act_as[1]",
        "principals.ana.projects[0]",
        "principals.ana.projects[1]",
        "principals.bob.projects[0]",
    ]
    shop, pay, platform = rows["principals.ana.projects[0]"], rows["principals.ana.projects[1]"], rows["grants[0]"]
    assert (shop["own_project"], shop["zone"], shop["users"], shop["sources"]) == (True, "internal", ["bob"], None)
    assert (shop["states"], shop["groups"], shop["act_as"], shop["audit"]) == (
        ["verified", "deprecated"],
        ["dev"],
        None,
        True,
    )
    assert (shop["paths"], shop["denied_paths"]) == (["docs/", "src/"], ["src/keys/"])
    assert pay["paths"] == ["src/"]
    bot, cyd = rows["principals.ana.act_as[0]"], rows["principals.ana.act_as[1]"]
    assert (bot["act_as"], bot["project"], bot["expires"], bot["audit"]) == (["bot"], None, None, False)
    assert (cyd["act_as"], cyd["project"], cyd["reason"]) == (["cyd"], "shop", "holidays")
    assert cyd["expires"] == datetime(2026, 12, 31, tzinfo=UTC)
    assert (pay["zone"], pay["sources"]) == ("internal", ["git:*", "session-event"])
    assert pay["expires"] == datetime(2026, 12, 31, tzinfo=UTC)
    assert (platform["own_project"], platform["for_projects"], platform["zone"]) == (False, ["shop"], "restricted")
    assert (platform["reason"], platform["states"]) == ("shared rules", None)
    assert platform["expires"] == datetime(2099, 1, 1, tzinfo=UTC)
    assert file.tokens == {TOKEN: "ana"}
    assert (file.projects("ana"), file.projects("bob"), file.projects("x")) == (["pay", "shop"], ["shop"], [])
    assert file.digest == hashlib.sha256((tmp_path / "grants.yaml").read_bytes()).hexdigest()


def test_what_a_principal_declares_caps_every_grant(tmp_path):
    wide = "zones: restricted, states: [candidate, verified]"
    text = f"""
principals:
  ana: {{projects: [{{project: shop, {wide}}}, {{project: pay, states: [candidate]}}], zones: internal, states: [verified, stale]}}
  bob: {{projects: [{{project: shop, {wide}}}]}}
grants:
  - {{principal: ana, project: platform, {wide}, reason: shared rules, expires: 2099-01-01T00:00:00Z}}
"""
    rows = read(tmp_path, text).table.to_pylist()
    assert {(row["principal"], row["project"]): (row["zone"], row["states"]) for row in rows} == {
        ("ana", "shop"): ("internal", ["verified"]),
        ("ana", "pay"): ("internal", []),
        ("ana", "platform"): ("internal", ["verified"]),
        ("bob", "shop"): ("restricted", ["candidate", "verified"]),
    }


@pytest.mark.parametrize("text", ["", "principals: {}", "principals: {ana: {}}", "grants: []\ntokens: {}"])
def test_nothing_granted_is_an_empty_table(tmp_path, text):
    assert read(tmp_path, text).table.num_rows == 0


def test_a_token_is_never_quoted(tmp_path):
    for principal in ("ana", "[]"):
        with pytest.raises(PolicyError) as error:
            read(tmp_path, f"principals: {{ana: {{}}}}\ntokens: {{my-bearer-token: {principal}}}")
        assert "my-bearer-token" not in str(error.value)


def test_a_file_that_cannot_be_read_is_not_said_to_be_missing(tmp_path):
    with pytest.raises(PolicyError, match=r"Is a directory: grants file ") as refused:
        load_grants(tmp_path)
    assert not refused.value.hint


def test_a_starter_entry_is_written_once(tmp_path):
    path = tmp_path / "config" / "grants.yaml"
    assert write_starter_grants(path, "ana", "shop")
    before = path.read_bytes()
    assert not write_starter_grants(path, "ana", "shop")
    assert path.read_bytes() == before
    assert load_grants(path).projects("ana") == ["shop"]
    assert (path.stat().st_mode & 0o777) == 0o600


def test_only_whoever_starts_a_file_may_audit(tmp_path):
    path = tmp_path / "grants.yaml"
    for principal, project in (("ana", "shop"), ("bob", "pay"), ("ana", "late")):
        assert write_starter_grants(path, principal, project, audit=principal == "bob")
    assert not any(load_grants(path).table["audit"].to_pylist())
    assert write_starter_grants(tmp_path / "new.yaml", "ana", "shop", audit=True)
    assert load_grants(tmp_path / "new.yaml").table["audit"].to_pylist() == [True]


def test_a_starter_entry_keeps_everything_that_stands(tmp_path):
    path = tmp_path / "grants.yaml"
    path.write_text(WHOLE)
    path.chmod(0o640)
    before = load_grants(path)
    assert not write_starter_grants(path, "ana", "pay")
    assert path.read_text() == WHOLE
    assert not write_starter_grants(path, "cyd", "shop", first=True)
    assert path.read_text() == WHOLE
    assert write_starter_grants(path, "bob", "new", first=True)
    assert write_starter_grants(path, "cyd", "shop")
    after = load_grants(path)
    kept = [row for row in after.table.to_pylist() if row["rule_id"] in set(before.table["rule_id"].to_pylist())]
    assert kept == before.table.to_pylist()
    assert (after.projects("bob"), after.projects("cyd"), after.tokens) == (["new", "shop"], ["shop"], before.tokens)
    assert (path.stat().st_mode & 0o777) == 0o640


@pytest.mark.parametrize("text", ["principals: [x]", "nonsense: 1", "a: ["])
def test_a_file_that_is_not_understood_is_left_alone(tmp_path, text):
    path = tmp_path / "grants.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError):
        write_starter_grants(path, "ana", "shop")
    assert path.read_text() == text
    assert [file.name for file in tmp_path.iterdir() if file.suffix != ".lock"] == ["grants.yaml"]


@pytest.mark.parametrize("key", ["paths", "denied_paths"])
@pytest.mark.parametrize(
    "glob",
    [
        "d[0-6]/",
        "!keys/",
        "keys//",
        "keys/ ",
        "^keys/",
    ],
)
def test_a_glob_of_another_tool_is_refused_and_denies_no_less_than_it_says(tmp_path: Path, key: str, glob: str):
    for place in (f"{{projects: [shop], {key}: ['{glob}']}}", f"{{projects: [{{project: shop, {key}: ['{glob}']}}]}}"):
        (tmp_path / "grants.yaml").write_text(f"principals: {{ana: {place}}}")
        with pytest.raises(PolicyError, match="Expected a glob such as src/keys/ or") as error:
            load_grants(tmp_path / "grants.yaml")
        assert "[[] is a bracket" in str(error.value)


def test_who_may_append_is_told_until_the_grant_expires(tmp_path: Path):
    entries = "[shop, {project: pay, expires: 2030-01-01T00:00:00Z, reason: a trial}]"
    (tmp_path / "grants.yaml").write_text(f"principals: {{ana: {{projects: [shop], append: {entries}}}, bob: {{}}}}")
    grants = load_grants(tmp_path / "grants.yaml")
    before, after = datetime(2029, 12, 31, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    assert grants.appendable("ana", before) == ["pay", "shop"]
    assert grants.appendable("ana", after) == ["shop"]
    assert grants.appendable("bob", before) == []
    assert grants.projects("ana") == ["shop"]
