"""The HTTP door: who is let in, what comes back, limits, errors, and the same bytes as the command line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import run
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.runs.log import RunLog
from scoped_retrieval.pipeline.views.recall_xray import render_xray

pytest.importorskip("fastapi", reason="needs the extra serve")
from scoped_retrieval.pipeline.servers.http_app import application, serve
from starlette.testclient import TestClient

ASKED = {"question": "default role", "as_of": "2030-06-01T12:00:00Z"}
LOCAL = ("127.0.0.1", 50_000)
PROGRAM = {"x-scoped-retrieval": "1"}
TOKENS = {"ana": "token-of-ana", "bob": "token-of-bob"}


@pytest.fixture
def settings(shop: Path) -> Settings:
    flags = {"principal": "ana", "lanes": "lexical,symbol,exact", "serve_max_bytes": 4_000, "serve_max_requests": 3}
    return load_settings(flags, cwd=shop, environ={}, user=shop / "none.toml")


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    with TestClient(application(settings), base_url="http://localhost", client=LOCAL, headers=PROGRAM) as client:
        yield client


@pytest.fixture
def guarded(settings: Settings) -> Iterator[Callable[..., TestClient]]:
    """Clients of a server with tokens, each with one token or none, from another machine."""
    grants = yaml.safe_load(settings.grants_path.read_text())
    grants["principals"]["bob"] = {"projects": ["shop"]}
    grants["tokens"] = {hashlib.sha256(token.encode()).hexdigest(): who for who, token in TOKENS.items()}
    settings.grants_path.write_text(yaml.safe_dump(grants))
    app = application(settings)
    with TestClient(app):

        def client(token: str | None = None) -> TestClient:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            return TestClient(app, base_url="http://corp.example", client=("10.0.0.9", 9), headers=headers)

        yield client


def problem(response: Any, status: int, code: str) -> str:
    """The message of an error that has the one shape."""
    assert response.status_code == status, response.text
    body = response.json()
    assert (
        {"error", "code", "message"} <= set(body) <= {"error", "code", "message", "hint", "at", "choices", "trace_id"}
    )
    assert body["code"] == code
    return body["message"]


def test_one_request_is_answered_and_its_snapshot_is_stored(client: TestClient, settings: Settings):
    answer = client.post("/v1/retrieve", json=ASKED)
    assert answer.status_code == 200
    found = answer.json()
    assert found["status"] == "ok" and "There is no default role" in found["block"]
    assert [row["snapshot_id"] for row in client.get("/v1/snapshots").json()["snapshots"]] == [found["snapshot_id"]]
    assert [*(settings["runs"] / "live").iterdir()]
    assert answer.headers["cache-control"] == "no-store" and len(answer.headers["x-trace-id"]) == 32


def test_no_error_echoes_a_token(client: TestClient):
    asked = {**ASKED, "purpose": "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"}
    for body in (asked, [asked]):
        answer = client.post("/v1/retrieve", json=body)
        assert "[REDACTED:" in answer.text and asked["purpose"] not in answer.text


def test_a_list_is_answered_in_its_order_and_a_wrong_row_does_not_stop_the_others(client: TestClient):
    rows = [ASKED, {**ASKED, "purpose": "fix-tests"}, {**ASKED, "question": "createSession"}]
    first, wrong, last = client.post("/v1/retrieve", json=rows).json()["results"]
    assert (first["status"], last["status"]) == ("ok", "ok")
    assert wrong["code"] == "invalid_request"
    assert (
        wrong["message"].startswith("Expected one of fix-test, explain-code")
        and "requests[1].purpose" in wrong["message"]
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/engram/v1/recall/xray", "Expected a value, got none - at q"),
        ("/engram/v1/recall/xray?q=role&budget=many", "got 'many' - at budget"),
        ("/engram/v1/recall/xray?q=role&q=rule", "Expected each parameter once, got it twice - at q"),
        (
            "/v1/snapshots/retr-snap-x-1?format=pdf",
            "Expected one of json, text, markdown, xray, audit, html, bundle",
        ),
    ],
)
def test_a_wrong_parameter_is_named_with_the_valid_ones(client: TestClient, path: str, message: str):
    assert message in problem(client.get(path), 400, "invalid_request")


def test_an_error_has_the_place_and_the_valid_values_as_fields(client: TestClient):
    body = client.get("/v1/snapshots/retr-snap-x-1?format=pdf").json()
    assert (body["at"], "text" in body["choices"]) == ("format", True)


def test_the_x_ray_has_document_002_s_path_parameters_and_shape(client: TestClient):
    for path in ("/engram/v1/recall/xray", "/v1/recall/xray"):
        answer = client.get(path, params={"q": "default role", "session": "s-1", "budget": "700"})
        found = answer.json()
        assert found["snapshotFound"] is True
        snapshot = found["snapshot"]
        assert (snapshot["schemaVersion"], snapshot["query"], snapshot["sessionKey"]) == ("1", "default role", "s-1")
        assert snapshot["budget"]["chars"] == 700 and 0 < snapshot["budget"]["used"] <= 700
        stored = client.get(f"/v1/snapshots/{snapshot['snapshotId']}")
        assert stored.content == answer.content


def test_an_x_ray_may_be_kept_by_its_caller_and_nothing_else_may(client: TestClient):
    kept = client.get("/engram/v1/recall/xray?q=role").headers
    assert (kept["cache-control"], kept["vary"]) == ("private, max-age=60", "authorization")
    assert client.get("/v1/snapshots").headers["cache-control"] == "no-store"


def test_without_a_stored_snapshot_the_x_ray_says_that_there_is_none(client: TestClient, monkeypatch):
    monkeypatch.setattr(
        RunLog, "commit", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    answer = client.get("/engram/v1/recall/xray", params={"q": "default role"})
    assert (answer.status_code, answer.json()) == (200, {"snapshotFound": False})


def test_a_namespace_narrows_and_never_widens(client: TestClient, shop: Path, capsys):
    rows = [{"source_id": f"notes:{name}", "text": f"The zebra rule of {name}.", "namespace": name} for name in "ab"]
    (shop / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("index", "--add", "evidence=rows.jsonl", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0

    def sources(**parameters: str) -> set[str]:
        found = client.get("/engram/v1/recall/xray", params={"q": "zebra rule", **parameters}).json()["snapshot"]
        return {result["provenance"]["source"] for result in found["results"]} & {"notes:a", "notes:b"}

    assert (sources(namespace="a"), sources(namespace="b"), sources(namespace="c")) == ({"notes:a"}, {"notes:b"}, set())


@pytest.mark.parametrize(("form", "kind"), [("text", "text/plain"), ("block", "text/plain"), ("markdown", "text/markdown"), ("html", "text/html"), ("json", "application/json")])  # fmt: skip
def test_a_format_has_its_media_type(client: TestClient, form: str, kind: str):
    snapshot = client.post("/v1/retrieve", json=ASKED).json()["snapshot_id"]
    served = client.get(f"/v1/snapshots/{snapshot}", params={"format": form})
    assert served.headers["content-type"].startswith(kind)


def test_why_and_export(client: TestClient, settings: Settings, tmp_path: Path, capsys):
    found = client.post("/v1/retrieve", json=ASKED).json()
    base = f"/v1/snapshots/{found['snapshot_id']}"
    evidence = found["citations"][0]["evidence_id"]
    assert client.get(f"{base}/why", params={"evidence": evidence}).json()["rows"][0]["outcome"] == "selected"
    assert "a row that you may ask about" in problem(client.get(f"{base}/why?evidence=none"), 404, "not_found")
    (tmp_path / "one.json").write_bytes(client.get(f"{base}?format=export").content)
    assert run("verify", str(tmp_path / "one.json"), capsys=capsys)[0] == 0


def test_a_token_opens_its_principal_s_snapshots_alone(guarded: Callable[..., TestClient]):
    ana, bob = guarded(TOKENS["ana"]), guarded(TOKENS["bob"])
    mine = ana.post("/v1/retrieve", json=ASKED).json()["snapshot_id"]
    assert bob.post("/v1/retrieve", json=ASKED).json()["status"] == "ok"
    assert ana.get(f"/v1/snapshots/{mine}").status_code == 200
    foreign = problem(bob.get(f"/v1/snapshots/{mine}"), 404, "not_found")
    absent = problem(bob.get(f"/v1/snapshots/{mine[:-4]}9999"), 404, "not_found")
    assert foreign.replace(mine, "") == absent.replace(f"{mine[:-4]}9999", "")
    assert len(bob.get("/v1/snapshots").json()["snapshots"]) == 1


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer ", "Basic token-of-ana", "token-of-ana"])
def test_without_a_known_token_nobody_is_let_in(guarded: Callable[..., TestClient], header: str | None, caplog):
    client = guarded()
    for path in ("/v1/snapshots", "/engram/v1/recall/xray?q=role"):
        answer = client.get(path, headers={"authorization": header} if header else {})
        assert "bearer token" in problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/v1/health").status_code == 200
    assert "token-of-ana" not in caplog.text


@pytest.mark.parametrize("left", [{hashlib.sha256(b"token-of-bob").hexdigest(): "bob"}, {}, None, "no key"])
def test_a_token_that_was_taken_back_is_refused_at_once_even_if_it_was_the_last(
    guarded: Callable[..., TestClient], settings: Settings, left: Any
):
    ana = guarded(TOKENS["ana"])
    here = TestClient(ana.app, base_url="http://localhost", client=LOCAL, headers=PROGRAM)
    assert ana.get("/v1/snapshots").status_code == 200
    grants = yaml.safe_load(settings.grants_path.read_text())
    grants = {name: value for name, value in grants.items() if name != "tokens"}
    settings.grants_path.write_text(yaml.safe_dump(grants if left == "no key" else {**grants, "tokens": left}))
    for client in (ana, here):
        problem(client.get("/v1/snapshots"), 401, "unauthorized")
        problem(client.post("/v1/retrieve", json=ASKED), 401, "unauthorized")


def test_tokens_that_are_added_to_a_running_server_end_its_mode_without_them(client: TestClient, settings: Settings):
    assert client.get("/v1/snapshots").status_code == 200
    settings.grants_path.write_text(f"{settings.grants_path.read_text()}\ntokens: {{{'f' * 64}: ana}}\n")
    problem(client.get("/v1/snapshots"), 401, "unauthorized")


def test_without_tokens_only_this_machine_is_answered_and_only_by_its_own_name(settings: Settings):
    app = application(settings)
    with TestClient(app, base_url="http://localhost", client=LOCAL, headers=PROGRAM) as client:
        assert client.get("/v1/snapshots").status_code == 200
        rebound = client.get("/v1/snapshots", headers={"host": "evil.example"})
        assert problem(rebound, 403, "foreign_name")
        assert problem(client.get("/v1/snapshots", headers={"origin": "http://evil.example"}), 403, "foreign_page")
    elsewhere = TestClient(app, base_url="http://localhost", client=("10.0.0.9", 9), headers=PROGRAM)
    assert problem(elsewhere.get("/v1/snapshots"), 401, "unauthorized")


def test_a_path_that_is_no_route_is_not_found_and_a_route_wants_proof_of_no_page(settings: Settings):
    with TestClient(application(settings), base_url="http://localhost", client=LOCAL) as client:
        for path in ("/nosuch", "/", "/v1/snapshots/x/nosuch"):
            problem(client.get(path), 404, "no_such_route")
        for path in ("/v1/snapshots", "/v1/snapshots/nosuch", "/v1/recall/explain", "/v1/recall/xray"):
            problem(client.get(path), 403, "no_header")
            assert client.get(path, headers=PROGRAM).status_code != 403
            assert client.head(path).status_code == 405
        assert client.get("/v1/health").status_code == 200


def test_an_answer_has_its_text_once(client: TestClient):
    answer = client.post("/v1/retrieve", json=ASKED)
    assert (
        answer.text.count("There is no default role") == answer.json()["block"].count("There is no default role") == 1
    )


def test_an_address_that_others_reach_needs_tokens(settings: Settings):
    with pytest.raises(ValueError, match="Expected a loopback address where no token is granted"):
        serve(settings, "0.0.0.0", 8765)


def test_a_body_that_is_too_large_is_refused_however_long_it_says_it_is(client: TestClient):
    said = client.post("/v1/retrieve", json={"question": "x" * 5_000})
    assert "at most 4,000 bytes" in problem(said, 413, "too_large")

    def pieces() -> Iterator[bytes]:
        for _ in range(9):
            yield b"x" * 1_000

    assert problem(client.post("/v1/retrieve", content=pieces()), 413, "too_large")


def test_an_unforeseen_error_has_a_trace_id_that_the_log_names_and_quotes_nothing(
    client: TestClient, monkeypatch, caplog
):
    def fails(*_: object) -> None:
        raise KeyError("secret evidence")

    monkeypatch.setattr("scoped_retrieval.pipeline.servers.retriever_pool.PrincipalSession.retrieve", fails)
    answer = client.post("/v1/retrieve", json=ASKED)
    assert problem(answer, 500, "internal_error") == "Unexpected KeyError"
    trace = answer.json()["trace_id"]
    assert trace == answer.headers["x-trace-id"] and trace in caplog.text
    assert "secret" not in answer.text + caplog.text and "test_serve.py:" in caplog.text


def test_a_corpus_that_is_gone_is_named_in_the_log_and_served_again_once_it_is_back(
    client: TestClient, settings: Settings, caplog
):
    assert client.post("/v1/retrieve", json=ASKED).status_code == 200
    head = settings["corpus"] / "HEADS"
    away = head.rename(head.with_name("AWAY"))
    for answer in (client.post("/v1/retrieve", json=ASKED), client.get("/v1/health")):
        problem(answer, 503, "store_unavailable")
        assert str(settings["corpus"]) not in answer.text
        assert answer.json()["trace_id"] in caplog.text and str(settings["corpus"]) in caplog.text
    away.rename(head)
    assert client.post("/v1/retrieve", json=ASKED).status_code == 200


def test_no_error_names_a_file_of_the_server(client: TestClient, settings: Settings, tmp_path, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    answer = client.post("/v1/retrieve", json={**ASKED, "tokenizer": "tiktoken:cl100k_base"})
    problem(answer, 400, "invalid_request")
    assert str(tmp_path) not in answer.text
    settings.grants_path.write_text("principals: [")
    answer = client.get("/v1/snapshots")
    problem(answer, 503, "policy_unavailable")
    assert str(tmp_path) not in answer.text


def test_a_corpus_that_moved_on_is_asked_as_it_is_now(client: TestClient, shop: Path, capsys):
    before = client.post("/v1/retrieve", json={**ASKED, "question": "zebra"}).json()
    assert "zebra" not in before["block"]
    (shop / "shop/docs/zebra.md").write_text("# Zebra\n\nThe zebra rule.\n")
    assert run("index", "shop", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    after = client.post("/v1/retrieve", json={**ASKED, "question": "zebra"}).json()
    assert "The zebra rule." in after["block"]


def test_the_last_recall_of_a_session_is_explained_without_asking_anew(client: TestClient):
    assert client.get("/v1/recall/explain").json() == {"snapshotFound": False}
    first = client.get("/v1/recall/xray", params={"q": "default role", "session": "s-1"})
    client.get("/v1/recall/xray", params={"q": "createSession", "session": "s-2"})
    for path in ("/v1/recall/explain", "/engram/v1/recall/explain"):
        assert client.get(path, params={"session": "s-1"}).content == first.content
    assert client.get("/v1/recall/explain").json()["snapshot"]["query"] == "createSession"
    assert client.get("/v1/recall/explain", params={"session": "s-3"}).json() == {"snapshotFound": False}
    name = first.json()["snapshot"]["snapshotId"]
    for form in ("text", "markdown"):
        shown = client.get("/v1/recall/explain", params={"session": "s-1", "format": form})
        assert shown.content == client.get(f"/v1/snapshots/{name}", params={"format": form}).content
    assert len(client.get("/v1/snapshots").json()["snapshots"]) == 2
    wrong = client.get("/v1/recall/explain?format=html")
    assert "Expected one of json, text, markdown" in problem(wrong, 400, "invalid_request")


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_the_json_of_an_x_ray_is_rendered_to_what_is_served(client: TestClient, form: str):
    received = client.get("/v1/recall/xray", params={"q": "default role", "session": "s-1"}).json()["snapshot"]
    served = client.get("/v1/recall/explain", params={"session": "s-1", "format": form})
    assert render_xray(received, form) == served.text


def test_an_answer_that_is_not_kept_has_no_x_ray(settings: Settings):
    unkept = settings.having("flag -c", record=False)
    with TestClient(application(unkept), base_url="http://localhost", client=LOCAL, headers=PROGRAM) as client:
        answer = client.post("/v1/retrieve", json=ASKED).json()
        assert (answer["status"], "There is no default role" in answer["block"]) == ("ok", True)
        found = client.get("/v1/recall/xray", params={"q": "default role"})
        assert (found.status_code, found.json()) == (200, {"snapshotFound": False})
        assert client.get("/v1/snapshots").json()["snapshots"] == []


def test_nobody_s_recall_is_explained_to_another(guarded: Callable[..., TestClient]):
    guarded(TOKENS["ana"]).get("/v1/recall/xray", params={"q": "default role", "session": "s-1"})
    found = guarded(TOKENS["bob"]).get("/v1/recall/explain", params={"session": "s-1"})
    assert found.json() == {"snapshotFound": False}


def may_append(settings: Settings, who: str = "ana", **entry: Any) -> None:
    grants = yaml.safe_load(settings.grants_path.read_text())
    grants["principals"][who]["append"] = [{"project": "shop", **entry}]
    settings.grants_path.write_text(yaml.safe_dump(grants))


def test_a_row_is_added_where_a_grant_lets_its_principal_append(client: TestClient, settings: Settings):
    rows = {"project": "shop", "rows": [{"text": "The okapi rule: no default role.", "tags": ["roles"]}]}
    assert "you may not add rows to project" in problem(client.post("/v1/evidence", json=rows), 404, "not_found")
    may_append(settings, expires="2001-01-01T00:00:00Z")
    problem(client.post("/v1/evidence", json=rows), 404, "not_found")
    may_append(settings)
    added = client.post("/v1/evidence", json=rows).json()
    assert client.post("/v1/evidence", json=rows).json() == added
    found = client.post("/v1/retrieve", json={"question": "okapi rule", "project": "shop"}).json()
    cited = {one["evidence_id"]: one for one in found["citations"]}
    assert cited[added["evidence_ids"][0]]["source_id"] == "memory:appended"
    elsewhere = client.post("/v1/evidence", json={**rows, "project": "pay"})
    assert "project 'pay'" in problem(elsewhere, 404, "not_found")


HELD, CHANGED = "The okapi rule: no default role.", "The okapi rule: a guest signs in."


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "m1", "text": HELD}, {"id": "m1", "text": CHANGED, "event_time": "2020-01-01T00:00:00Z"}],
        [{"id": "m1", "text": HELD}, {"id": "m2", "supersedes": ["m1"], "text": CHANGED}],
    ],
    ids=["same id", "supersedes an id"],
)
@pytest.mark.parametrize("at_once", [False, True], ids=["one after another", "in one request"])
def test_an_added_row_replaces_an_earlier_one(
    client: TestClient, settings: Settings, rows: list[dict[str, Any]], at_once: bool
):
    may_append(settings)
    for part in [rows] if at_once else [[row] for row in rows]:
        assert client.post("/v1/evidence", json={"project": "shop", "rows": part}).status_code == 200
    block = client.post("/v1/retrieve", json={"question": "okapi rule", "project": "shop"}).json()["block"]
    assert (HELD in block, CHANGED in block) == (False, True)


def test_an_added_row_is_its_principal_s_own_and_no_more_trusted_than_its_kind(guarded, settings: Settings):
    may_append(settings)
    ana, bob = guarded(TOKENS["ana"]), guarded(TOKENS["bob"])
    secret = "AKIAIOSFODNN7EXAMPLE"
    row = {"text": f"The okapi rule. Key {secret}", "source": "workspace:shop"}
    added = ana.post("/v1/evidence", json={"project": "shop", "rows": [row]}).json()
    asked = {"question": "okapi rule", "project": "shop"}
    found = ana.post("/v1/retrieve", json=asked).json()
    (cited,) = [one for one in found["citations"] if one["evidence_id"] in added["evidence_ids"]]
    assert (cited["source_id"], cited["standing"]) == ("memory:workspace:shop", "hint")
    assert added["masked"] == 1 and secret not in found["block"]
    assert "okapi" not in bob.post("/v1/retrieve", json=asked).json()["block"]
    problem(bob.post("/v1/evidence", json={"project": "shop", "rows": [row]}), 404, "not_found")
