"""The rules that document 002 names by their numbers (S2.42), each held by a test of its own."""

from __future__ import annotations

import pytest
from audited_runs import ASKED, SAYS, settings_of
from command_line import run
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.servers import renderings


@pytest.fixture(name="flags")
def flags_fixture(world, tmp_path, monkeypatch):
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("HOME", str(tmp_path))
    where = {"corpus": world.folder / "corpus", "grants": world.folder / "grants.yaml", "runs": tmp_path / "runs"}
    return [*(f"--{name}={path}" for name, path in where.items()), "--project=shop"]


@pytest.mark.parametrize("flag", ["--format", "--budget", "--namespace", "--out"])
def test_rule_14_a_flag_without_its_value_is_an_error(flag, flags, capsys):
    code, out, err = run("xray", ASKED["question"], *flags, flag, capsys=capsys)
    assert (code, out) == (2, "")
    assert f"Option '{flag}' requires an argument" in err
    code, out, err = run("xray", ASKED["question"], *flags, flag, "--json", capsys=capsys)
    assert (code, out.startswith('{\n  "error"'), f"at {flag}" in err) == (2, True, True)


def test_rule_47_sessions_share_no_state(world, tmp_path):
    with world.story.open(runs=tmp_path / "runs") as first, world.story.open(runs=tmp_path / "runs") as second:
        one = first.retrieve(ASKED, session_id="s-1", request_id="same")
        two = second.retrieve(ASKED | {"question": f"where is {SAYS} read?"}, session_id="s-2", request_id="same")
        assert one.snapshot_id != two.snapshot_id
        assert first.retrieve(ASKED, session_id="s-1").block == one.block
    settings = settings_of(world.folder, runs=tmp_path / "runs")
    assert [renderings.shown(settings, found.snapshot_id).xray["sessionKey"] for found in (one, two)] == ["s-1", "s-2"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"budget": {"max_chars": 0}}, "max_chars"),
        ({"namespace": 7}, "namespace"),
        ({"purpose": "mischief"}, "Expected one of fix-test"),
        ({"question": ""}, "question"),
    ],
)
def test_rule_51_what_is_not_valid_is_refused_and_never_replaced_by_a_default(world, fields, said):
    with world.story.open() as retriever, pytest.raises(InputError, match=said):
        retriever.retrieve({**ASKED, **fields})
