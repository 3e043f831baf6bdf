"""Weight files: read strictly, and in force wherever policies are."""

from __future__ import annotations

from pathlib import Path

import yaml
from command_line import indexed_fixture, shop_fixture  # noqa: F401 - fixtures
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.config.policies.weight_files import load_weights, weight_file_text
from scoped_retrieval.pipeline.runs import Runs


def written(folder: Path, content: dict | str) -> Path:
    path = folder / "weights.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_a_file_changes_the_weights_that_it_names_and_nothing_else(tmp_path):
    file = written(tmp_path, weight_file_text({"explain-code": {"lexical": 0.61}}, {"date": "today"}))
    assert load_weights(file).weights == {"explain-code": {"lexical": 0.61}}
    before, after = load_policies(), load_policies(weights=file)
    rows = zip(before.purpose_policies.to_pylist(), after.purpose_policies.to_pylist(), strict=True)
    changed = {one["purpose"]: {name for name in one if one[name] != other[name]} for one, other in rows}
    assert changed.pop("explain-code") == {"weight_lexical", "version"}
    assert set(changed) == {"answer-question", "fix-test", "review-risk"}
    assert not any(changed.values())
    assert after.digest != before.digest
    assert load_policies(weights=written(tmp_path, {"weights": {}})).digest != after.digest


def test_a_flag_or_a_setting_puts_the_file_in_force(shop, capsys):
    file = written(shop, {"weights": {"explain-code": {"lexical": 0.75, "authority": 0}}})
    (shop / "requests.jsonl").write_text(
        '{"question": "default role?", "purpose": "explain-code", "project": "shop"}\n'
    )
    assert main(["ask", "default role?", "--purpose", "explain-code", "-c", f"weights={file}"]) == 0
    assert main(["run", "requests.jsonl", "-c", f"weights={file}"]) == 0
    (shop / "scoped-retrieval.toml").write_text('weights = "weights.yaml"\n')
    assert main(["run", "requests.jsonl"]) == 0
    assert main(["run", "requests.jsonl", "-c", "weights=absent.yaml"]) == 2
    assert "No such file or directory: weight file" in capsys.readouterr().err
    store = Runs(shop / ".scoped-retrieval" / "runs", create=False)
    runs = [store.open(run_id) for run_id in store.run_ids()]
    stated = [run.table("rerank_weights").select(["lexical", "authority"]).to_pylist() for run in runs]
    assert stated == [[{"lexical": 0.75, "authority": 0.0}]] * 3
