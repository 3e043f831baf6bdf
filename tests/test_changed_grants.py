"""Grants that change while a retriever is open: what was withdrawn is gone with the next request, what was given is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest
from command_line import ask
from retrieving import LEXICAL, NOON
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.pipeline.asking.opening import open_retriever
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.config.grants import grant_all, load_grants
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.reading.access import replayed
from scoped_retrieval.pipeline.reading.auditing.what_if import what_if
from scoped_retrieval.pipeline.runs import Runs, verify
from scoped_retrieval.pipeline.servers.renderings import FORMATS, rendered
from scoped_retrieval.pipeline.storage.places import place_of
from small_corpus import Story, row, settings_of

Answers = Generator[bool, None, None]
QUESTION = {"question": "what does role_3 return?", "project": "shop", "purpose": "explain-code"}


def granting(corpus: Corpus, people: str) -> None:
    (corpus.path / "grants.yaml").write_text(f"principals: {people}\n")


@pytest.fixture(name="retriever")
def retriever_fixture(corpus: Corpus, tmp_path: Path):
    granting(corpus, "{ana: {projects: [shop]}}")
    with Retriever.open(
        corpus, principal="ana", runs=tmp_path / "runs", lanes=LEXICAL, clock=lambda: NOON
    ) as retriever:
        yield retriever


def test_a_grant_that_was_withdrawn_is_gone_with_the_next_request(corpus: Corpus, tmp_path: Path, retriever: Retriever):
    before = retriever.retrieve(QUESTION)
    granting(corpus, "{bob: {projects: [shop]}}")
    after = retriever.retrieve(QUESTION)
    granting(corpus, "{ana: {projects: [shop]}}")
    again = retriever.retrieve(QUESTION)
    assert [one.status for one in (before, after, again)] == ["ok", "denied", "ok"]
    assert (after.block, again.block) == ("", before.block)
    store = Runs(tmp_path / "runs")
    retriever.close()
    assert [verify(store, run_id).status for run_id in store.run_ids()] == ["ok"] * 3
    runs = [store.open(str(one.snapshot_id)).provenance for one in (before, after, again)]
    rested = [dict(zip(*run.to_pydict().values(), strict=True))["grants"] for run in runs]
    assert rested[0] == rested[2] == retriever.grants.digest != rested[1]


def test_a_path_that_is_denied_from_now_on_is_not_shown(corpus: Corpus, retriever: Retriever):
    (citation, *_) = retriever.retrieve(QUESTION).citations
    granting(corpus, f"{{ana: {{projects: [shop], denied_paths: ['{citation['path']}']}}}}")
    assert citation["path"] not in [one["path"] for one in retriever.retrieve(QUESTION).citations]


def test_a_run_is_staged_under_the_grants_of_its_moment(corpus: Corpus, retriever: Retriever):
    granting(corpus, "{ana: {projects: [elsewhere]}}")
    assert retriever.run([QUESTION]).statuses == {"denied": 1}


@pytest.mark.parametrize("content", ["principals: [", None], ids=["damaged", "gone"])
def test_under_grants_that_nobody_can_read_nothing_is_answered(
    corpus: Corpus, tmp_path: Path, retriever: Retriever, content: str | None
):
    file = corpus.path / "grants.yaml"
    file.unlink() if content is None else file.write_text(content)
    for answer in (lambda: retriever.retrieve(QUESTION), lambda: retriever.run([QUESTION])):
        with pytest.raises(PolicyError, match=r"grants\.yaml"):
            answer()
    assert not Runs(tmp_path / "runs").run_ids()
    granting(corpus, "{ana: {projects: [shop]}}")
    assert retriever.retrieve(QUESTION).status == "ok"


def in_place(file: Path, text: str) -> None:
    """Other bytes of the same length, and the time that the file had."""
    before = file.stat()
    file.write_text(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def renamed_over(file: Path, text: str) -> None:
    before, other = file.stat(), file.with_name("other.yaml")
    other.write_text(text)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def link_swapped(file: Path, text: str) -> None:
    """A link to another file of the same size and time."""
    target, before = file.with_name(f"{file.resolve().name}.other"), file.stat()
    target.write_text(text)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))
    file.unlink()
    file.symlink_to(target)


def through_the_command_line(settings: Settings, snapshot: str) -> Answers:
    while True:
        yield main(["show", snapshot]) == 0


def through_http(settings: Settings, snapshot: str) -> Answers:
    pytest.importorskip("fastapi", reason="needs the extra serve")
    from scoped_retrieval.pipeline.servers.http_app import application
    from starlette.testclient import TestClient

    with TestClient(
        application(settings), base_url="http://localhost", client=("127.0.0.1", 9), headers={"x-scoped-retrieval": "1"}
    ) as client:
        while True:
            yield client.get(f"/v1/snapshots/{snapshot}").status_code == 200


def through_mcp(settings: Settings, snapshot: str) -> Answers:
    pytest.importorskip("mcp", reason="needs the extra serve")
    from scoped_retrieval.pipeline.servers.mcp_server import mcp_server
    from scoped_retrieval.pipeline.servers.mcp_tools import Tools
    from scoped_retrieval.pipeline.servers.retriever_pool import RetrieverPool

    pool = RetrieverPool(settings)
    pool.ready()
    server = mcp_server(lambda: Tools(settings, pool))

    async def called() -> bool:
        from mcp import Client

        async with Client(server) as client:
            found = await client.call_tool("replay", {"snapshot_id": snapshot})
            return not found.is_error

    while True:
        yield anyio.run(called)


def through_python(settings: Settings, snapshot: str) -> Answers:
    with open_retriever(settings) as retriever:
        while True:
            yield retriever.retrieve({"question": "default role", "project": "shop"}).status == "ok"


@pytest.mark.parametrize(
    ("door", "edit"),
    [
        (through_the_command_line, in_place), (through_http, renamed_over), (through_mcp, link_swapped),
        *((through_python, edit) for edit in (in_place, renamed_over, link_swapped)),
    ],
)  # fmt: skip
def test_the_next_request_through_every_door_sees_an_edit_that_keeps_size_and_time(
    shop: Path,
    door: Callable[[Settings, str], Answers],
    edit: Callable[[Path, str], None],
    capsys: pytest.CaptureFixture[str],
):
    _, snapshot = ask(capsys=capsys)
    settings = load_settings({"project": "shop", "lanes": "lexical"})
    file = settings.grants_path
    file.write_text("principals: {ana: {projects: [shop]}}\n")
    answers = door(settings, snapshot)
    found = [next(answers)]
    for who in ("bob", "ana"):
        edit(file, f"principals: {{{who}: {{projects: [shop]}}}}\n")
        found.append(next(answers))
    answers.close()
    assert found == [True, False, True]


def test_grants_on_an_object_store_are_read_each_time():
    place = place_of("memory://grants-that-change/grants.yaml")
    place.write_bytes(b"principals: {ana: {projects: [shop]}}")
    assert load_grants(place).principals == ("ana",)
    place.write_bytes(b"principals: {bob: {projects: [shop]}}")
    assert load_grants(place).principals == ("bob",)


def test_a_grant_of_a_project_for_corpora_without_grants_is_of_it_alone_and_audits_nothing():
    (row,) = grant_all("ana", "shop").table.to_pylist()
    assert (row["principal"], row["project"], row["own_project"], row["audit"], row["act_as"]) == (
        "ana",
        "shop",
        True,
        False,
        None,
    )


WITHDRAWN = {
    "a path": "{projects: [shop], groups: [staff], zones: private, denied_paths: ['plans/fees.md']}",
    "a group": "{projects: [shop], zones: private}",
    "a zone": "{projects: [shop], groups: [staff], zones: internal}",
}


def told_over_http(settings: Settings, snapshot_id: str, message: str) -> None:
    """HTTP says in a header, and MCP in a text of its own, what a form cannot say."""
    from fastapi.testclient import TestClient
    from scoped_retrieval.pipeline.servers.http_app import application
    from scoped_retrieval.pipeline.servers.mcp_tools import TOOLS
    from scoped_retrieval.pipeline.servers.retriever_pool import RetrieverPool

    session = RetrieverPool(settings).session_of("ana")
    local = {"base_url": "http://localhost", "client": ("127.0.0.1", 9), "headers": {"x-scoped-retrieval": "1"}}
    with TestClient(application(settings), **local) as client:
        for form in ("block", "context-block"):
            answer = client.get(f"/v1/snapshots/{snapshot_id}", params={"format": form})
            assert answer.headers["x-withheld"] == message
            assert TOOLS["replay"].call(session, {"snapshot_id": snapshot_id, "format": form})[1][1:] == [message]


@pytest.mark.parametrize("what", WITHDRAWN)
def test_a_stored_answer_shows_no_item_whose_right_was_withdrawn_since(tmp_path: Path, what: str):
    secret = row(
        "doc",
        "plans/fees.md",
        "Renewal fees are heliotrope.\n",
        source_id="doc:fees",
        principals=["staff"],
        zone="private",
    )
    story = Story(tmp_path, secret, row("doc", "docs/fees.md", "Renewal fees are due in May.\n", zone="internal"))
    grants = tmp_path / "grants.yaml"
    grants.write_text("principals: {ana: {projects: [shop], groups: [staff], zones: private}}\n")
    with story.open(runs=tmp_path / "runs") as retriever:
        found = retriever.retrieve({"project": "shop", "question": "When are renewal fees due?"})
    assert "heliotrope" in found.block and "in May" in found.block and found.snapshot_id
    settings = settings_of(tmp_path)
    assert replayed(settings, found.snapshot_id).block == found.block
    grants.write_text(f"principals: {{ana: {WITHDRAWN[what]}}}\n")
    for form in set(FORMATS.values) - {"export"}:  # which is for auditors alone
        text = rendered(settings, found.snapshot_id, form).text
        assert "heliotrope" not in text and "plans/fees.md" not in text, form
    left = replayed(settings, found.snapshot_id)
    assert "in May" in (left.block or "") and [row["path"] for row in left.citations.to_pylist()] == ["docs/fees.md"]
    (warned,) = [row for row in left.conditions.to_pylist() if row["condition"] == "rights_withdrawn"]
    assert warned["action"] == "warn"
    for form in ("block", "context-block"):
        assert rendered(settings, found.snapshot_id, form).withheld == (warned["message"],)
    if find_spec("fastapi"):
        told_over_http(settings, found.snapshot_id, warned["message"])
    grants.write_text("principals: {ana: {projects: [shop], groups: [staff], zones: private}}\n")
    assert replayed(settings, found.snapshot_id).block == found.block


def test_what_if_and_diff_name_no_item_whose_right_was_withdrawn_since(tmp_path: Path, capsys):
    texts = {"docs": "Renewal fees are due in May.", "plans": "Whoever renews late pays renewal fees of heliotrope."}
    rows = [row("doc", f"{name}/fees.md", text, source_id=f"doc:{name}") for name, text in texts.items()]
    story = Story(tmp_path, *rows)
    grants, asked = (
        tmp_path / "grants.yaml",
        {"project": "shop", "question": "When are fees due?", "purpose": "answer-question"},
    )
    grants.write_text("principals: {ana: {projects: [shop]}}\n")
    with story.open(runs=tmp_path / "runs") as retriever:
        snapshot, *runs = (
            retriever.retrieve(asked).snapshot_id,
            *(retriever.run([asked | {"request_id": "one"}]).run_id for _ in range(2)),
        )
    flags = ("--json", "--corpus", "corpus", "--runs", "runs", "--grants", "grants.yaml")

    def told(*words: str) -> str:
        assert main([*words, *flags]) == 0
        return capsys.readouterr().out

    commands = [("diff", *runs), ("diff", snapshot, snapshot)]
    commands += [("what-if", name, "--set", "max_items=5") for name in (runs[0], snapshot)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
        patch.chdir(tmp_path)
        for words in commands:
            assert "plans/fees.md" in told(*words), words
        grants.write_text("principals: {ana: {projects: [shop], denied_paths: [plans/]}}\n")
        for words in commands:
            assert "docs/fees.md" in (text := told(*words)) and "plans/fees.md" not in text, words


def test_without_a_grants_file_what_if_shows_nothing_more(tmp_path: Path):
    story = Story(tmp_path, *(row("doc", f"a{number}.md", f"Fee number{number} is due.") for number in range(9)))
    grants = tmp_path / "grants.yaml"
    grants.write_text("principals: {ana: {projects: [shop]}}\n")
    with story.open(runs=tmp_path / "runs") as retriever:
        asked = {"project": "shop", "question": "Which fee is due?", "budget": {"max_items": 1}}
        found = retriever.retrieve(asked)
    assert found.block and found.snapshot_id
    grants.unlink()
    settings = settings_of(tmp_path)
    assert replayed(settings, found.snapshot_id).block == found.block
    (block,) = what_if(settings, found.snapshot_id, {"max_items": 9}).blocks.values()
    assert block == ""


def test_no_reader_of_a_stored_answer_names_a_row_whose_right_was_withdrawn_since(tmp_path: Path, capsys):
    rows = [
        row("doc", f"{name}/fees.md", f"Renewal fees of {name} are due in May.") for name in ("docs", "plans", "lib")
    ]
    story, grants = Story(tmp_path, *rows), tmp_path / "grants.yaml"
    grants.write_text("principals: {ana: {projects: [shop]}}\n")
    with story.open(runs=tmp_path / "runs") as retriever:
        asked = {"project": "shop", "question": "When are renewal fees due?", "budget": {"max_items": 2}}
        found = retriever.retrieve(asked)
    shown = {citation["path"] for citation in found.citations}
    assert len(shown) == 2 and found.snapshot_id
    flags = ("--corpus", "corpus", "--runs", "runs", "--grants", "grants.yaml")
    left, *withdrawn = sorted(["docs", "plans", "lib"], key=lambda name: f"{name}/fees.md" not in shown)

    def told(*words: str) -> str:
        code, printed = main([*words, *flags]), capsys.readouterr()
        return printed.out if code == 0 else ""

    forms = [
        ("show", "@", "--as", "bundle"),
        ("log", "--as", "csv"),
        *(("why", f"{name}/fees.md") for name in withdrawn),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
        patch.chdir(tmp_path)
        for words in forms:
            assert any(f"{name}/fees.md" in told(*words) for name in withdrawn), words
        grants.write_text(f"principals: {{ana: {{projects: [{{project: shop, paths: [{left}/]}}]}}}}\n")
        for words in forms:
            assert not any(f"{name}/fees.md" in told(*words) for name in withdrawn), words
        assert f"{left}/fees.md" in told("log", "--as", "csv") and told("why", f"{left}/fees.md")
        main(["show", "@", "--as", "context-block", *flags])
        assert "withheld" in capsys.readouterr().err
