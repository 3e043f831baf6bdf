"""What a message shows of a file: keys, words and numbers, and neither secrets nor the text of another file."""

import json
from pathlib import Path

import pytest
from command_line import run
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.parsing.quoting import shown
from scoped_retrieval.pipeline.requests.presets import fields_in

TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
PROSE = "the launch code of the north site is four words"


@pytest.mark.parametrize(
    ("value", "at", "says"),
    [
        ("fix_tests", "requests[0].purpose", "'fix_tests'"),  (None, "top", "nothing"),
        (PROSE, "top", "text of 47 characters"),  (20240917, "f.yaml: api_key", "a number"), (["a"], "top", "a list of 1"),
    ],
)  # fmt: skip
def test_a_value_is_shown_where_it_is_a_word_or_a_number_and_no_secret(value: object, at: str, says: str):
    assert InputError.expected("more", shown(value, at), at).message == f"Expected more, got {says} - at {at}"


def written(folder: Path, text: str) -> Path:
    file = folder / "file.json"
    file.write_text(text, encoding="utf-8")
    return file


BAD = {
    "a key": json.dumps({TOKEN: 1}), "a value": json.dumps({"role_id": TOKEN, "purpose": TOKEN, "zone": TOKEN}),
    "a long key": json.dumps({PROSE: 1}), "a key below": json.dumps({"vocabulary": {"synonyms": {TOKEN: 1}}}),
    "a key twice": f'{{"{TOKEN}": 1, "{TOKEN}": 2}}', "another file": PROSE, "a word": TOKEN,
    "a password": json.dumps({"principals": {"ana": {"password": "Sommer2024A"}}}),
}  # fmt: skip


SETTINGS = {
    "a key": f"{TOKEN} = 1", "a table": f"[{TOKEN}]", "a word": f'workers = "{TOKEN}"', "a list": f'workers = ["{TOKEN}"]',
    "a key below": f"lanes = {{{TOKEN} = 1}}", "one of several": f'lanes = ["lexical", "{TOKEN}"]',
    "a URL for a path": f'cross_encoder = "https://host/{TOKEN}"', "among several": f'tokenizers = ["https://{TOKEN}/x"]',
    "an unknown protocol": f'corpus = "nope://{TOKEN}/x"', "a pattern": f'corpus = "s3://bucket/{TOKEN}/*"',
}  # fmt: skip


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_no_setting_of_a_file_is_quoted_that_is_a_secret(tmp_path: Path, text: str):
    (tmp_path / "user.toml").write_text(text)
    with pytest.raises(InputError, match=r"Expected .* - at .*user\.toml: ") as refused:
        load_settings({}, cwd=tmp_path, environ={}, user=tmp_path / "user.toml")
    assert TOKEN not in str(refused.value)


def test_no_key_of_a_preset_is_quoted_that_is_a_secret(tmp_path: Path):
    (tmp_path / "preset.json").write_text(json.dumps({TOKEN: None}))
    with pytest.raises(InputError, match=r"Expected a value, or none for .* - at preset\.json") as refused:
        fields_in(tmp_path / "preset.json")
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
@pytest.mark.parametrize("command", ["policies check", "contract"])
def test_no_validator_prints_what_a_file_holds(tmp_path: Path, text: str, command: str, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, text)
    if command == "contract":
        with pytest.raises(InputError) as refused:
            fields_in(file)
        said = str(refused.value)
    else:
        code, out, err = run(*command.split(), str(file), capsys=capsys)
        said = out + err
        assert code == 2
    assert "Expected " in said and file.name in said
    for secret in (TOKEN, TOKEN[:20], PROSE, PROSE[:20], "Sommer2024A"):
        assert secret not in said


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_no_loader_of_grants_prints_what_a_file_holds(tmp_path: Path, text: str):
    with pytest.raises(InputError) as refused:
        load_grants(written(tmp_path, text))
    for secret in (TOKEN, TOKEN[:20], PROSE, PROSE[:20], "Sommer2024A"):
        assert secret not in str(refused.value)
