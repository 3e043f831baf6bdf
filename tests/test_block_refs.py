"""The id that a block prints leads to its snapshot, for those who may read it."""

from __future__ import annotations

import pytest
from command_line import ask, indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures


def test_the_id_in_a_block_leads_to_its_snapshot(shop, capsys: pytest.CaptureFixture[str]) -> None:
    block, snapshot = ask(capsys=capsys)
    reference = block.splitlines()[0].rpartition(" ")[2]
    assert run("replay", reference, capsys=capsys)[1] == block
    for command in ("xray", "why"):
        assert run(command, reference, capsys=capsys)[:2] == run(command, snapshot, capsys=capsys)[:2]


def test_an_unknown_or_foreign_reference_is_an_unknown_snapshot(
    shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    block, _ = ask(capsys=capsys)
    reference = block.splitlines()[0].rpartition(" ")[2]
    for command in ("replay", "xray", "why"):
        assert run(command, "0" * 16, capsys=capsys)[0] == 3
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    for command in ("replay", "xray", "why"):
        assert run(command, reference, capsys=capsys)[0] == 3
