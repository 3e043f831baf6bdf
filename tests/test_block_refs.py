"""The id that a block prints leads to its snapshot, for those who may read it."""

from __future__ import annotations

import pytest
from command_line import ask, indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures


def test_the_id_in_a_block_leads_to_its_snapshot(shop, capsys: pytest.CaptureFixture[str]) -> None:
    block, snapshot = ask(capsys=capsys)
    reference = block.splitlines()[0].rpartition(" ")[2]
    assert run("show", reference, capsys=capsys)[1] == block
    for command in (("show", "--as", "xray"), ("why",)):
        assert run(*command, reference, capsys=capsys)[:2] == run(*command, snapshot, capsys=capsys)[:2]


def test_an_answer_is_named_by_how_long_ago_its_reader_asked(
    shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    grants = shop / ".scoped-retrieval/corpus/grants.yaml"
    grants.write_text(grants.read_text() + "  eve: {projects: [shop], audit: true}\n")
    first, _ = ask("--session", "s-1", "--set", "max_items=1", capsys=capsys)
    second, _ = ask(capsys=capsys)
    assert first != second
    for names, block in ((("@", None), second), (("@2", "@session:s-1"), first)):
        for name in names:
            assert run("show", *([name] if name else []), capsys=capsys)[:2] == (0, block)
    assert run("show", "@3", capsys=capsys)[0] == 3
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert run("show", "@session:s-1", capsys=capsys)[1] == first
    assert run("show", capsys=capsys)[0] == 3  # an auditor, who asked nothing


def test_an_unknown_or_foreign_reference_is_an_unknown_snapshot(
    shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    block, _ = ask(capsys=capsys)
    reference = block.splitlines()[0].rpartition(" ")[2]
    commands = (("show",), ("why", "docs/roles.md"))
    for command, *what in commands:
        assert run(command, "0" * 16, *what, capsys=capsys)[0] == 3
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    for command, *what in commands:
        assert run(command, reference, *what, capsys=capsys)[0] == 3
