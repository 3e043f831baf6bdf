"""Settings: the order of their sources, relative paths, and errors that name the place."""

from pathlib import Path

import pytest
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.config.settings import PROJECT_FILE, load_settings


@pytest.fixture
def place(tmp_path):
    """A user file, a project file two folders up, and a working folder."""
    (tmp_path / "home").mkdir()
    work = tmp_path / "repo" / "src" / "deep"
    work.mkdir(parents=True)

    class Place:
        user = tmp_path / "home" / "settings.toml"
        project = tmp_path / "repo" / PROJECT_FILE
        cwd = work

        def load(self, flags=None, environ=None):
            return load_settings(flags, cwd=self.cwd, environ=environ or {}, user=self.user)

    return Place()


def test_each_source_beats_the_one_before_it(place):
    assert place.load()["project"] is None
    place.user.write_text('project = "from-user"')
    assert place.load()["project"] == "from-user"
    place.project.write_text('project = "from-project"')
    assert place.load()["project"] == "from-project"
    environ = {"SCOPED_RETRIEVAL_PROJECT": "from-environment"}
    assert place.load(environ=environ)["project"] == "from-environment"
    settings = place.load({"project": "from-flag"}, environ)
    assert settings["project"] == "from-flag"
    assert settings.origin("project") == "flag --project"


PROFILED = """
project = "outside"
lanes = ["lexical"]

[profiles.nightly]
lanes = ["lexical", "file"]
shard_requests = 7
"""


def test_a_profile_beats_the_files_and_nothing_else(place):
    place.project.write_text(PROFILED)
    place.user.write_text("[profiles.nightly]\nshard_requests = 3\nworkers = 2")
    assert place.load()["lanes"] == ("lexical",)
    settings = place.load({"profile": "nightly"}, {"SCOPED_RETRIEVAL_LANES": "symbol"})
    values = {name: settings[name] for name in ("project", "lanes", "shard_requests", "workers")}
    assert values == {"project": "outside", "lanes": ("symbol",), "shard_requests": 7, "workers": 2}
    assert settings.origin("shard_requests") == f"project file {place.project} [profiles.nightly]"
    assert settings.origin("workers") == f"user file {place.user} [profiles.nightly]"


@pytest.mark.parametrize("chosen", ["flag", "environment", "user file"])
def test_a_profile_is_chosen_by_flag_environment_or_user_file(place, chosen):
    place.project.write_text(PROFILED)
    place.user.write_text('profile = "nightly"' if chosen == "user file" else "")
    flags = {"profile": "nightly"} if chosen == "flag" else {}
    environ = {"SCOPED_RETRIEVAL_PROFILE": "nightly"} if chosen == "environment" else {}
    settings = place.load(flags, environ)
    assert settings["shard_requests"] == 7
    assert settings.origin("profile").startswith(chosen)


def test_a_flag_that_was_not_given_changes_nothing(place):
    assert place.load({"project": None}).origin("project") == "default"


@pytest.mark.parametrize("where", ["user", "project"])
def test_a_relative_path_is_relative_to_its_file(place, where):
    file = getattr(place, where)
    file.write_text('corpus = "data/corpus"')
    assert place.load()["corpus"] == file.parent / "data" / "corpus"


def test_a_relative_flag_is_relative_to_the_working_folder(place):
    place.project.write_text('corpus = "data/corpus"')
    assert place.load({"corpus": Path("other")})["corpus"] == place.cwd / "other"


def test_defaults_stand_beside_the_project_file(place):
    place.project.write_text("")
    assert place.load()["corpus"] == place.project.parent / ".scoped-retrieval" / "corpus"


def test_grants_are_in_the_corpus_folder_unless_set(place):
    assert place.load({"corpus": Path("c")}).grants_path == place.cwd / "c" / "grants.yaml"
    assert place.load({"grants": Path("g.yaml")}).grants_path == place.cwd / "g.yaml"


@pytest.mark.parametrize("source", ["user", "project", "environment", "flag"])
def test_an_unknown_name_is_an_error_that_lists_the_valid_ones(place, source):
    flags, environ = {}, {}
    if source in ("user", "project"):
        getattr(place, source).write_text('corpsu = "x"')
    elif source == "environment":
        environ["SCOPED_RETRIEVAL_CORPSU"] = "x"
    else:
        flags["corpsu"] = "x"
    with pytest.raises(InputError, match=r"Expected one of corpus, runs, .*, got 'corpsu'"):
        place.load(flags, environ)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'purpose = "fix_tests"',
            "Expected one of fix-test, explain-code, review-risk, answer-question, got 'fix_tests'",
        ),
        ('encoder = "openai:"', "Expected one of minilm/1, .*, got 'openai:'"),
        ("progress = 3", "Expected true or false, got 3"),
        ("corpus = ", r"Expected TOML in UTF-8, got invalid TOML \(Invalid value.*\) - at .*toml"),
        ("a = " + "[" * 3000, "Expected TOML in UTF-8, got too deep nesting"),
    ],
)
def test_a_value_of_the_wrong_kind_names_file_and_setting(place, text, message):
    place.user.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        place.load()
    assert str(place.user) in caught.value.message
