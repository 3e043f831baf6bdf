"""What is installed: every sub-package listed, data inside, and no bare `nodes` or `pipeline` in site-packages."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from golden_file import expect_golden
from scoped_retrieval.pipeline.sources.grammars import WHEELS

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGE, FOLDERS = "scoped_retrieval", ("nodes", "pipeline")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist, built from a copy without network: the installed setuptools is used."""
    folder = tmp_path_factory.mktemp("dist")
    source = folder / "source"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in (PACKAGE, *FOLDERS, "bench", "data", "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for file in ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, source)
    for name in ("LICENSE", "Makefile"):
        shutil.copy(ROOT / name, source)
    for build in ("build_wheel", "build_sdist"):
        command = f"import setuptools.build_meta as b, sys; b.{build}(sys.argv[1])"
        subprocess.run([sys.executable, "-c", command, str(folder)], cwd=source, capture_output=True, check=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def test_every_sub_package_is_listed():
    listed = set(PYPROJECT["tool"]["setuptools"]["packages"])
    present = {
        "scoped_retrieval." + file.parent.relative_to(ROOT).as_posix().replace("/", ".")
        for folder in (*FOLDERS, "data")
        for file in (ROOT / folder).rglob("__init__.py")
    }
    assert {PACKAGE, *present} == listed


def test_wheel_holds_packages_data_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as wheel:
        names = wheel.namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {PACKAGE}
    for wanted in ("nodes/tables/__init__.py", "nodes/py.typed", "pipeline/cli/app.py", "data/demo/requests.jsonl"):
        assert f"scoped_retrieval/{wanted}" in names
    for file in (ROOT / "data" / "demo").rglob("*"):
        if file.is_file():
            assert f"scoped_retrieval/{file.relative_to(ROOT).as_posix()}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A bare environment with our wheel alone; its dependencies are those of the running one, without our source."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pure = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with zipfile.ZipFile(built[0]) as wheel:
        wheel.extractall(pure)
    dependencies = os.pathsep.join(p for p in sys.path if p.endswith("site-packages"))
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": dependencies, "HOME": str(folder), "PYTHONSAFEPATH": "1"}
    return python, environ, folder


def test_no_module_named_nodes_or_pipeline_is_importable_bare(installed):
    python, environ, folder = installed
    code = (
        "import importlib.util as u, sys, scoped_retrieval.pipeline.cli, scoped_retrieval.nodes.tables as t;"
        "assert 'env' in t.__file__ or 'site-packages' in t.__file__, t.__file__;"
        "found = [m for m in ('nodes', 'pipeline', 'data') if u.find_spec(m) or m in sys.modules];"
        "print(t.__file__); sys.exit(repr(found) if found else 0)"
    )
    run = subprocess.run([python, "-c", code], env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert str(folder) in run.stdout


def test_a_bare_install_prints_its_help(installed):
    python, environ, folder = installed
    code = "import sys; from scoped_retrieval.pipeline.cli import main; sys.exit(main(['--help']))"
    run = subprocess.run([python, "-c", code], env=environ, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "Usage: scoped-retrieval" in run.stdout


@pytest.mark.golden
def test_constraints_pin_every_dependency_of_a_base_install():
    """`make golden` adds a pin that is missing, at the version that is installed."""
    path = ROOT / "constraints.txt"
    text = path.read_text(encoding="utf-8")
    pinned = {_normal(line.partition("==")[0]) for line in text.splitlines()}
    needed = [re.split(r"[^\w.-]", line)[0] for line in PYPROJECT["project"]["dependencies"]]
    assert {_normal(name) for name in WHEELS} <= set(map(_normal, needed)), "the wheel of a grammar is a dependency"
    lines = text.splitlines()
    for pin in (f"{name}=={metadata.version(name)}" for name in needed if _normal(name) not in pinned):
        later = (at for at, line in enumerate(lines) if "==" in line and line.casefold() > pin.casefold())
        lines.insert(next(later, len(lines)), pin)
    expect_golden(path, "\n".join(lines) + "\n")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def entry() -> dict[str, Any]:
    return json.loads((ROOT / "server.json").read_text(encoding="utf-8"))


def test_the_entry_is_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    (package,) = entry()["packages"]
    assert (entry()["version"], package["version"], package["identifier"]) == (version, version, "scoped-retrieval")
    assert package["runtimeArguments"][0]["value"] == f"scoped-retrieval[serve]=={version}"
    assert f"mcp-name: {entry()['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_arguments_are_flags_of_the_command(capsys: pytest.CaptureFixture[str]):
    from scoped_retrieval.pipeline.cli import main

    assert main(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    (package,) = entry()["packages"]
    first, *flags = package["packageArguments"]
    assert first["value"] == "serve" and all(flag["name"] in shown for flag in flags)
