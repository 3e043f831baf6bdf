"""Why a row is not there: auditors learn stage, rule and remedy of any row they audit, callers of rows they may see."""

from __future__ import annotations

import json
from datetime import timedelta
from types import SimpleNamespace

import pyarrow.compute as pc
import pytest
import yaml
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures
from scoped_retrieval.nodes.errors import AccessError, InputError
from scoped_retrieval.nodes.tables import CONTRACT_BOUNDS, CONTRACTS
from scoped_retrieval.nodes.walls.gate import Case
from scoped_retrieval.nodes.walls.gates import GATES
from scoped_retrieval.pipeline.contracts.why import audit_trail, refusals, remedies, why_not
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.servers.renderings import shown
from small_corpus import NOON, Story, days_ago, row, settings_of

SAYS = "the default role of a cart session is guest"


def about(path: str, **columns) -> dict:
    return row("workspace", path, f"{SAYS} {path}", evidence_kind="doc", **columns)


ROWS = (
    about("shown.md"),
    about("zone.md", zone="private"),
    about("owner.md", owner_user="bob"),
    about("readers.md", principals=["ops"]),
    about("nobody.md", principals=[]),
    about("source.md", source_id="external:wiki", origin_class="external"),
    about("keys/path.md"),
    about("branch.md", branch="dev", namespace="a"),
    about("tree.md", workspace_root="/w"),
    about("hidden.md", declared_visibility="runtime-only"),
    about("state.md", lifecycle="deprecated"),
    about("revoked.md", lifecycle="revoked"),
    about("blocked.md", declared_safety="blocked"),
    about("weak.md", authority=0),
    about("future.md", days=-2),
    about("gone.md", days=9, superseded_at=days_ago(5)),
    about("late.md", valid_from=NOON + timedelta(days=3), level="Sprint"),
    about("old.md", event_time=days_ago(90), excluded_roles=["architect"]),
    row("workspace", "other.md", "nothing in common", evidence_kind="doc"),
)
ASKED = {
    "question": SAYS, "project": "shop", "purpose": "explain-code", "branch": "main", "denied_sources": ["external", "*:wiki"],
    "denied_paths": ["keys/"], "min_authority": 1, "time": {"include_after": days_ago(60).isoformat()},
    "budget": {"max_items": 1, "lane_k": 3},
}  # fmt: skip
PEOPLE = {
    "ana": {"projects": ["shop"], "audit": True},
    "bob": {"projects": ["shop"]},
    "eve": {"projects": ["shop"]},
    "aud": {"projects": ["pay"], "audit": True},
}


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory) -> SimpleNamespace:
    """A snapshot of bob's and one of ana's, who audits shop; `aud` audits pay alone."""
    folder = tmp_path_factory.mktemp("why")
    story = Story(folder, *ROWS)
    story.tell(about("pay.md"), project="pay")
    (folder / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE}))
    found = {}
    for who in ("ana", "bob"):
        with story.open(principal=who, runs=folder / "runs") as retriever:
            found[who] = retriever.retrieve(ASKED).snapshot_id
            found[f"{who} denied"] = retriever.retrieve(ASKED | {"allowed_sources": []}).snapshot_id
    return SimpleNamespace(folder=folder, **{name.replace(" ", "_"): id_ for name, id_ in found.items()})


def why(world: SimpleNamespace, evidence: str, *, who: str = "ana", snapshot: str | None = None) -> dict:
    (answer,) = why_not(settings_of(world.folder, who), snapshot or world.bob, evidence)
    return answer


@pytest.mark.parametrize(("path", "gate", "rule", "remedy"), [
    ("zone.md", "zone", "principals.bob.projects[0]: zone is at most internal", "a grant that admits zone private"),
    ("readers.md", "principals", "the row's list of readers", "that bob or one of their groups is among ops"),
    ("nobody.md", "principals", "the row's list of readers", "only that bob or one of their groups is among nobody"),
    ("source.md", "source_deny", "request.denied_sources: source does not match *:wiki or external", "a request that admits source external:wiki"),
    ("keys/path.md", "path_deny", "request.denied_paths: path does not match keys/ or (none)", "a request that admits path keys/path.md"),
    ("branch.md", "branch", "request.branch: branch is none or main", "a request that admits branch dev"),
    ("tree.md", "workspace", "request.workspace_root: work tree is none or that of the request, none", "a request that admits work tree /w"),
    ("hidden.md", "visibility", "the row", "only a row with another declared visibility; no contract shows this one"),
    ("state.md", "lifecycle", "purpose explain-code: state is verified", "allow_stale_memory"),
    ("revoked.md", "lifecycle", "the row", "only a row with another state; no contract shows this one"),
    ("blocked.md", "safety", "the row", "only a row with another declared safety; no contract shows this one"),
    ("weak.md", "min_authority", "request.min_authority: authority is at least 1", "a request that admits authority 0"),
    ("future.md", "recorded", "as_of 2026-06-01T12:00:00Z", "an as_of from 2026-06-03T12:00:00Z on"),
    ("gone.md", "superseded", "as_of 2026-06-01T12:00:00Z", "an as_of from 2026-05-23T12:00:00Z until 2026-05-27T12:00:00Z"),
    ("late.md", "valid_from", "as_of 2026-06-01T12:00:00Z", "an as_of from 2026-06-04T12:00:00Z on"),
    ("old.md", "window_start", "request.time: from 2026-04-02T12:00:00Z to open", "a window that has 2026-03-03T12:00:00Z in it"),
])  # fmt: skip
def test_an_auditor_learns_gate_rule_and_remedy_of_a_row_that_a_gate_stopped(world, path, gate, rule, remedy):
    told = why(world, path)
    assert (told["stage"], told["decided_by"]) == ("gate", gate)
    assert told["reason_code"] == next(each.reason_code for each in GATES if each.name == gate)
    assert told["rules"][0] == f"{gate}: {rule}"
    assert told["would_admit"][0] == remedy


def test_an_audit_entry_leads_to_its_decision_its_line_in_the_log_and_the_row_as_it_was_stored(
    world, monkeypatch, capsys
):
    settings = settings_of(world.folder, "ana")
    (result,) = shown(settings, world.ana).xray["results"]
    found = audit_trail(settings, result["auditEntryId"])
    assert found["decision"]["outcome"] == "selected"
    assert found["decision"]["evidence_id"] == result["memoryId"]
    lines = {line.number: line for line in Runs(world.folder / "runs").log.lines()}
    line = lines[found["log"]["sequence"]]
    assert (line.hash, line.body["run_id"]) == (found["log"]["hash"], Runs(settings["runs"]).open(world.ana).run_id)
    evidence = Corpus.open(world.folder / "corpus").frame(["shop"]).evidence
    stored = evidence.filter(pc.equal(evidence["evidence_id"], result["memoryId"])).to_pylist()[0]
    assert found["stored"]["text_sha256"] == stored["text_sha256"]
    assert found["stored"]["source_id"] == stored["source_id"] == result["provenance"]["source"]
    assert found["stored"]["generation"] == Corpus.open(world.folder / "corpus").generation
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    where = [f"--{name}={world.folder / file}" for name, file in
             (("corpus", "corpus"), ("runs", "runs"), ("grants", "grants.yaml"))]  # fmt: skip
    code, out, _ = run("why", result["auditEntryId"], *where, capsys=capsys)
    assert code == 0
    assert f"log: sequence {line.number}, kind {line.body['kind']}, hash {line.hash}" in " ".join(out.split())

    (own,) = shown(settings_of(world.folder, "bob"), world.bob).xray["results"]
    assert set(audit_trail(settings_of(world.folder, "bob"), own["auditEntryId"])) == {"audit_entry", "decision"}
    with pytest.raises(AccessError):
        audit_trail(settings_of(world.folder, "eve"), own["auditEntryId"])
    with pytest.raises(InputError, match="Expected an audit entry"):
        audit_trail(settings, world.ana)


def test_a_row_of_another_user_needs_a_grant_for_them(world):
    told = why(world, "owner.md", snapshot=world.ana)
    assert (told["decided_by"], told["would_admit"][0]) == ("owner", "a grant that admits owner bob")


def test_a_row_that_was_dropped_later_names_the_stage_and_the_limit(world):
    shown, cut, apart = (why(world, path) for path in ("owner.md", "shown.md", "other.md"))
    assert (shown["outcome"], shown["stage"], shown["would_admit"]) == ("selected", "project", [])
    assert (cut["outcome"], cut["reason_code"]) == (
        "rejected",
        "near_duplicate" if "near" in cut["reason_code"] else "budget_items",
    )
    assert (apart["reason_code"], apart["stage"]) in {
        ("not_recalled", "recall"),
        ("budget_items", "select"),
        ("low_score", "select"),
    }
    assert cut["would_admit"]
    assert apart["would_admit"]
    assert shown["closeness"] is None
    assert cut["closeness"].startswith("of all scores its own is number 2, 0.")
    assert why(world, "shown.md", who="bob")["closeness"] == cut["closeness"]


def test_a_denied_contract_lost_every_row(world):
    told = why(world, "shown.md", snapshot=world.ana_denied)
    assert (told["stage"], told["decided_by"], told["reason_code"]) == ("resolve", "contract", "no_source_allowed")


def test_an_auditor_names_a_row_by_id_or_line_and_only_in_projects_they_audit(world):
    told = why(world, "zone.md")
    assert why(world, told["evidence_id"]) == why(world, "zone.md#1") == told
    for foreign in ("pay.md", "zone.md#7", "none.md"):
        with pytest.raises(AccessError, match="Expected a row that you may ask about, got none"):
            why(world, foreign)
    with pytest.raises(AccessError, match="Expected a snapshot that you may read"):
        why(world, "zone.md", who="aud")


@pytest.mark.parametrize("who", ["ana", "bob"])
def test_a_row_is_named_by_the_label_that_the_block_gives_it(world, who):
    settings, snapshot = settings_of(world.folder, who), getattr(world, who)
    (cited,) = Runs(settings["runs"]).open(snapshot).table("citations", snapshot_id=snapshot).to_pylist()
    assert why_not(settings, snapshot, cited["label"]) == why_not(settings, snapshot, cited["evidence_id"])
    with pytest.raises(AccessError, match="a label of the block, an evidence id"):
        why_not(settings, snapshot, cited["label"] + "1")


def test_a_caller_learns_of_rows_they_may_see_and_one_answer_of_every_other(world):
    assert why(world, "shown.md", who="bob") == why(world, "shown.md")
    assert why(world, "shown.md#1", who="bob") == why(world, "shown.md")
    messages = set()
    for path in ("zone.md", "hidden.md", "future.md", "keys/path.md", "pay.md", "none.md", "zone.md#1", "none.md#1"):
        with pytest.raises(AccessError) as caught:
            why(world, path, who="bob")
        messages.add(str(caught.value).replace(path, "EVIDENCE"))
    assert len(messages) == 1
    with pytest.raises(AccessError, match="Expected a snapshot that you may read"):
        why(world, "shown.md", who="eve")


BY_MODE = {
    "mode": "planning", "search_paths": ["late.md", "zone.md", "keys/"], "excluded_paths": ["**/path.md"],
    "excluded_levels": ["sprint"], "excluded_zones": ["private"],
}  # fmt: skip


BY_ROLE = {"role": "architect", "role_sources": ["workspace"], "forbidden_sources": ["workspace", "*:w*"]}


@pytest.mark.parametrize(
    ("change", "granted"),
    [({}, {}), (BY_MODE, {}), (BY_ROLE, {}), ({}, {"namespaces": []}), ({"namespace": "b"}, {"namespaces": ["b"]})],
    ids=["plain", "mode", "role", "namespaces", "another namespace"],
)
def test_what_would_admit_a_row_does(world, change, granted):
    """Every remedy was tried: after all of them the second wall lets the row through, or only the row could change."""
    from scoped_retrieval.pipeline.contracts import why as module
    from scoped_retrieval.pipeline.reading.access import pinned_corpus

    run = Runs(settings_of(world.folder, "ana")["runs"]).open(world.bob)
    frame = pinned_corpus(settings_of(world.folder, "ana"), run).frame()
    contract, bounds = (
        run.table(table.name, snapshot_id=world.bob).to_pylist() for table in (CONTRACTS, CONTRACT_BOUNDS)
    )
    contract[0] |= change
    bounds = [bound | granted for bound in bounds]
    for position in range(frame.evidence.num_rows):
        found = remedies(contract[0], bounds, frame, position)
        gates = [gate.name for gate, _ in found]
        assert len(gates) == len(set(gates))
        verdict = refusals(CONTRACTS.from_rows(contract), CONTRACT_BOUNDS.from_rows(bounds), frame, [position])[0]
        assert (gates[0] if gates else None) == verdict["decided_by"]
        if all(opening.possible for _, opening in found):
            assert _after(module, contract[0], bounds, frame, position, len(found)) is None


UNSAID = {
    "zone": "private",
    "lifecycle": None,
    "authority": None,
    "excluded_roles": ["critic", "architect"],
    "namespace": "ui",
}


@pytest.mark.parametrize(
    ("row", "contract", "bounds", "gate", "rule", "needed"),
    [
        ({"zone": None}, {}, [{}], "zone", "g0: zone is at most private", "a grant that admits zone restricted"),
        ({}, {"include_states": ["verified", "candidate"]}, [{"states": ["verified"]}], "lifecycle", "g0: state is verified",
         "a grant that admits state candidate"),
        ({}, {"role": "architect"}, [{}], "role", "role architect: list of excluded roles does not name architect",
         "a role that is none of critic, architect"),
        ({}, {"min_authority": 2}, [{}], "min_authority", "request.min_authority: authority is at least 2",
         "a request that admits authority 0"),
        ({}, {"namespace": "core"}, [{"namespaces": ["ui"]}, {"namespaces": ["core"]}], "namespace",
         "request.namespace: namespace is none or core", "a request that admits namespace ui"),
        ({}, {"namespace": "core"}, [{"namespaces": ["ui"], "zone": "public"}, {"namespaces": ["core"]}], "namespace",
         "g1: namespace is none or core, request.namespace: namespace is none or core",
         "a grant that admits namespace ui and a request that admits namespace ui"),
    ],
)  # fmt: skip
def test_what_would_admit_a_row_is_what_its_gate_asks_for(row, contract, bounds, gate, rule, needed):
    """A word that is missing is named by what it counts as; of several grants those count that let the row come this far."""
    free = {"namespace": None, "role": None, "excluded_zones": [], "purpose": "p", "include_states": ["verified"]}
    granted = {"project": "shop", "zone": "private", "namespaces": None, "states": None, "users": [], "sources": None}
    granted |= {"paths": None, "denied_paths": []}
    held = [granted | {"rule_id": f"g{n}"} | each for n, each in enumerate(bounds)]
    stored = about("a.md", owner_project="shop") | UNSAID | row
    case = Case(free | contract, held, stored, [])
    assert next(each for each in GATES if each.name == gate).opening(case)[:2] == (rule, needed)


def _after(module, contract, bounds, frame, position, steps) -> str | None:
    """The gate that still stops the row once every remedy was followed."""
    import copy

    row_ = frame.evidence.slice(position, 1).to_pylist()[0]
    first, last = frame.row_index.placement_starts[position : position + 2]
    placed = frame.placements.slice(first, last - first).to_pylist()
    case = module.Case(copy.deepcopy(contract), copy.deepcopy(bounds), row_, placed)
    for _ in range(steps):
        stopped_by = module._stopped_by(case, frame, position)
        next(gate for gate in GATES if gate.name == stopped_by).remedy(case)
    return module._stopped_by(case, frame, position)


@pytest.mark.parametrize("who", ["ana", "bob"])
def test_a_row_that_no_lane_found_says_what_it_lacks_to_those_who_may_see_it(tmp_path, who):
    rows = [about(f"{n}.md") for n in range(9)]
    rows.append(row("workspace", "apart.md", "entirely different words", evidence_kind="doc", days=400))
    story = Story(tmp_path, *rows, about("zone.md", zone="private"))
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE}))
    budget = {"lane_k": 2, "pool_k": 3}
    with story.open(principal=who, runs=tmp_path / "runs", lanes=("lexical", "recent")) as retriever:
        asked = retriever.retrieve({"question": SAYS, "project": "shop", "purpose": "explain-code", "budget": budget})
    world = SimpleNamespace(folder=tmp_path, bob=asked.snapshot_id)
    decided = {row["path"] for row in asked.tables["decisions"].to_pylist()}
    told = [why(world, f"{n}.md", who=who) for n in range(9) if f"{n}.md" not in decided]
    assert told
    assert {(one["reason_code"], one["stage"]) for one in told} <= {
        ("not_recalled", "recall"),
        ("not_recalled", "merge"),
    }
    assert all("_k above" in one["would_admit"][0] for one in told)
    apart = why(world, "apart.md", who=who)
    assert apart["reason_text"].startswith("it shares no term")
    if who == "bob":
        denied = {"projects": [{"project": "shop", "denied_paths": ["apart.md"]}]}
        (tmp_path / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE | {"bob": denied}}))
        for path in ("apart.md", "zone.md", "none.md"):
            with pytest.raises(AccessError, match="Expected a row that you may ask about, got none"):
                why(world, path, who=who)


def test_a_row_that_mode_or_role_leaves_out_names_them(world):
    from scoped_retrieval.pipeline.reading.access import pinned_corpus

    run = Runs(settings_of(world.folder, "ana")["runs"]).open(world.bob)
    frame = pinned_corpus(settings_of(world.folder, "ana"), run).frame()
    contract, bounds = (
        run.table(table.name, snapshot_id=world.bob).to_pylist() for table in (CONTRACTS, CONTRACT_BOUNDS)
    )
    place = {path: n for n, path in enumerate(frame.evidence["path"].to_pylist())}

    def told(path: str, change: dict = BY_MODE) -> list[tuple[str, str]]:
        found = remedies(contract[0] | change | {"denied_paths": [], "denied_sources": []}, bounds, frame, place[path])
        return [(gate.name, opening.rule) for gate, opening in found]

    assert told("late.md")[0] == ("level", "mode planning: level is not sprint")
    assert told("shown.md") == [("path_allow", "mode planning: path matches late.md or zone.md or keys/")]
    assert told("keys/path.md") == [("path_deny", "mode planning: path does not match **/path.md or (none)")]
    assert told("zone.md") == [
        ("zone", "principals.bob.projects[0]: zone is at most internal, mode planning: zone is not private")
    ]
    forbidding = ("role_source", "role architect: source does not match workspace")
    assert told("shown.md", BY_ROLE) == [forbidding]
    assert told("old.md", BY_ROLE)[:2] == [
        forbidding,
        ("role", "role architect: list of excluded roles does not name architect"),
    ]
    assert told("source.md", BY_ROLE)[0] == ("source_allow", "role architect: source matches workspace")


def test_the_lines_of_a_row_are_those_as_of_the_question(tmp_path):
    text = "login tokens of the vault expire soon"
    story = Story(tmp_path, row("doc", "a.md", text, days=100, version="v1"))
    later = row("doc", "a.md", text, days=2, version="v2", line_start=40, line_end=40, byte_start=900, byte_end=937)
    story.tell(later, complete=["doc:story"])
    with story.open(runs=tmp_path / "runs") as retriever:
        asked = {"question": "login vault tokens", "project": "shop", "purpose": "answer-question"}
        now, then = (retriever.retrieve(asked | at) for at in ({}, {"as_of": days_ago(50).isoformat()}))
    for answer, lines in ((now, "40-40"), (then, "1-1")):
        assert [each["lines"] for each in why_not(settings_of(tmp_path), answer.snapshot_id, "a.md")] == [lines]


def test_a_line_that_trimming_cut_is_not_said_to_be_shown(tmp_path):
    lines = [f"{SAYS}, says line {number}" for number in range(1, 41)]
    story = Story(
        tmp_path, row("workspace", "long.md", "\n".join(lines), evidence_kind="doc", line_start=1, line_end=40)
    )
    with story.open(runs=tmp_path / "runs") as retriever:
        asked = {"question": SAYS, "project": "shop", "purpose": "explain-code", "max_tokens": 160}
        snapshot = retriever.retrieve(asked).snapshot_id
    (item,) = (
        Runs(settings_of(tmp_path)["runs"])
        .open(snapshot)
        .table("trimmed", texts=True, snapshot_id=snapshot)
        .to_pylist()
    )
    for number, line in enumerate(lines, start=1):
        (told,) = why_not(settings_of(tmp_path), snapshot, f"long.md:{number}")
        assert (told["outcome"] == "selected") == (line in item["visible_text"].splitlines())
        assert told["stage"] == ("project" if told["outcome"] == "selected" else "trim")


def test_older_rows_of_a_file_are_counted_in_one_sentence(tmp_path, monkeypatch, capsys):
    old = (
        row("workspace", "a.md", f"{SAYS} {n}", evidence_kind="doc", days=9, superseded_at=days_ago(5)) for n in "xy"
    )
    story = Story(tmp_path, *old)
    story.tell(row("workspace", "a.md", SAYS, evidence_kind="doc", days=2))
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE}))
    with story.open(runs=tmp_path / "runs") as retriever:
        snapshot = retriever.retrieve({"question": SAYS, "project": "shop", "purpose": "explain-code"}).snapshot_id
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    where = [f"--{name}={tmp_path / file}" for name, file in
             (("corpus", "corpus"), ("runs", "runs"), ("grants", "grants.yaml"))]  # fmt: skip
    code, out, _ = run("why", snapshot, "a.md", *where, capsys=capsys)
    assert (code, out.count("superseded")) == (0, 0), out


def test_every_row_of_a_file_is_listed_and_those_that_came_far_have_what_would_admit_them(tmp_path, monkeypatch):
    monkeypatch.setattr("scoped_retrieval.pipeline.contracts.why.ROWS_EXPLAINED", 3)
    rows = [row("workspace", "a.md", f"{SAYS} {n}", evidence_kind="doc", days=9) for n in range(30)]
    rows += [row("workspace", "a.md", f"tundra {n}", evidence_kind="doc", zone="private") for n in range(9)]
    story = Story(tmp_path, *rows)
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE}))
    with story.open(runs=tmp_path / "runs") as retriever:
        asked = {"question": SAYS, "project": "shop", "purpose": "explain-code", "lane_k": 5}
        snapshot = retriever.retrieve(asked).snapshot_id
    found = why_not(settings_of(tmp_path), snapshot, "a.md")
    told = [each for each in found if each["decided_by"] == "zone"]
    assert (len(found), len(told)) == (39, 9)
    assert [bool(each["would_admit"]) for each in told] == [True] * 3 + [False] * 6
    assert all(each["would_admit"] for each in found if each["outcome"] == "rejected" and each not in told)


@pytest.mark.parametrize("place", ["docs/roles.md", "./docs/roles.md", "{folder}/docs/roles.md"])
def test_a_path_is_the_same_however_it_is_written(shop, place, capsys):
    assert run("index", "shop", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    assert run("ask", "default", "role", "--project", "shop", capsys=capsys)[0] == 0
    code, out, _ = run("why", place.format(folder=shop / "shop") + ":3", "--json", capsys=capsys)
    assert code == 0 and [each["path"] for each in json.loads(out)] == ["docs/roles.md"]


def test_a_file_is_told_of_by_its_rows_of_today_and_its_older_ones_in_one_sentence(shop, capsys):
    """Rows that came furthest stand first, each with its lines."""
    file = shop / "shop/docs/roles.md"
    for text in ("# A\n\nOld zebra.\n\n# B\n\nOld role.\n", "# A\n\nThe zebra.\n\n# B\n\nThe default role.\n"):
        file.write_text(text)
        assert run("index", "shop", "--no-semantic", capsys=capsys)[0] == 0
    assert run("ask", "zebra", "--set", "max_items=1", capsys=capsys)[0] == 0
    _, out, _ = run("why", "docs/roles.md", capsys=capsys)
    places = [line for line in out.splitlines() if line.startswith("docs/roles.md: ")]
    assert places == ["docs/roles.md: 1 row, 1-4", "docs/roles.md: 1 row, 5-7"]
    assert out.index("outcome: selected") < out.index("outcome: rejected")
    assert out.splitlines()[-1].startswith("3 older rows: ")
    listed = json.loads(run("why", "docs/roles.md", "--json", capsys=capsys)[1])
    assert sum(row["decided_by"] == "superseded" for row in listed) == 3 and len(listed) == 5
