"""Whatever evidence and questions say: one snapshot is the same bytes in every interface and format, and none of them acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from command_line import run
from hostile import ACTING, HOSTILE, hostile_rows
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.servers.renderings import FORMATS, rendered

pytest.importorskip("mcp", reason="needs the extra serve")
pytest.importorskip("fastapi", reason="needs the extra serve")
from mcp import Client
from scoped_retrieval.pipeline.servers.http_app import application
from scoped_retrieval.pipeline.servers.mcp_server import mcp_server
from scoped_retrieval.pipeline.servers.mcp_tools import Tools
from scoped_retrieval.pipeline.servers.retriever_pool import RetrieverPool
from starlette.testclient import TestClient

CHARACTERS = st.sampled_from([*HOSTILE, *"\x00\x7f\x85\u200d\u200f\u2028\ufeff\u00e9<&\"'`\n\t", "\r\n"])
QUESTIONS = st.lists(CHARACTERS | st.sampled_from(["retry", " limit ", "five"]), min_size=1, max_size=12).map("".join)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A snapshot of a question through each door, by its id and a format."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = hostile_rows(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
        from scoped_retrieval.pipeline.cli import main

        assert main(["index", "--add", f"evidence={rows!s}", "--project", "shop", "--no-semantic"]) == 0
        flags = {"principal": "ana", "lanes": "lexical,symbol,exact", "project": "shop"}
        chosen = load_settings(flags, cwd=folder, environ={}, user=folder / "none.toml")
        pool = RetrieverPool(chosen)
        server = mcp_server(lambda: Tools(chosen, pool))

        def tools(snapshot: str) -> dict[str, str]:
            async def read() -> dict[str, str]:
                async with Client(server) as client:

                    async def whole(form: str) -> str:
                        text, more, pages = "", [None], count(1)
                        while more:
                            named = {"snapshot_id": snapshot, "format": form, "page": next(pages)}
                            part, *more = (await client.call_tool("replay", named)).content
                            text += part.text
                        return text

                    return {form: await whole(form) for form in FORMATS.values}

            return anyio.run(read)

        sent = {"base_url": "http://localhost", "client": ("127.0.0.1", 9), "headers": {"x-scoped-retrieval": "1"}}
        http = TestClient(application(chosen), **sent)
        with http as client, Retriever.open(str(chosen["corpus"]), principal="ana", runs=str(chosen["runs"])) as asked:
            yield {"asked": asked, "settings": chosen, "http": client, "mcp": tools, "folder": folder}
        pool.close()


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=QUESTIONS.filter(lambda text: bool(text.strip())))
def test_every_door_gives_the_same_bytes_and_none_act(doors: dict[str, Any], question: str, capsys: Any):
    found = doors["asked"].retrieve({"question": f"retry {question}", "project": "shop"})
    snapshot = found.snapshot_id
    read = doors["mcp"](snapshot)
    for form in FORMATS.values:
        text = rendered(doors["settings"], snapshot, form).text
        assert not ACTING.search(text), form
        assert doors["http"].get(f"/v1/snapshots/{snapshot}", params={"format": form}).content == text.encode(), form
        assert read[form] == text, form
        assert run("show", snapshot, "--as", form, capsys=capsys)[:2] == (0, text), form
    assert not ACTING.search(found._repr_html_())


@pytest.mark.parametrize(
    "command", [("show", "{run}", "--as", "html"), ("log", "--as", "csv"), ("show", "@session:s-1", "--as", "xray")]
)
def test_a_file_holds_what_is_printed(doors: dict[str, Any], capsys: Any, command: tuple[str, ...]):
    asked = {"question": f"retry {HOSTILE}", "project": "shop", "session_id": "s-1"}
    snapshot = doors["asked"].retrieve(asked).snapshot_id
    said = [part.format(run=snapshot.replace("retr-snap", "run").rpartition("-")[0]) for part in command]
    code, printed, _ = run(*said, capsys=capsys)
    assert code == 0 and not ACTING.search(printed)
    assert written(doors["folder"] / "shown", *said, capsys=capsys) == printed.encode()


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get("/v1/snapshots", params={"status": HOSTILE}),
        lambda client: client.get("/v1/snapshots", params={HOSTILE: "1"}),
        lambda client: client.post("/v1/retrieve", json={HOSTILE: 1, "question": "a"}),
    ],
)
def test_an_error_names_what_was_sent_and_does_not_act(doors: dict[str, Any], ask: Callable[[Any], Any]):
    answer = ask(doors["http"])
    assert answer.status_code == 400
    assert not ACTING.search(answer.text)


def written(file: Path, *command: str, capsys: Any) -> bytes:
    """The bytes of the file that a command writes."""
    assert run(*command, "--out", str(file), capsys=capsys)[:2] == (0, "")
    return file.read_bytes()
