"""A small corpus to give commands in, and the commands as calls."""

import shutil

import pytest
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.config.opening import adopt
from scoped_retrieval.pipeline.config.settings import load_settings

SHOP = {
    "README.md": "# shop\n\nSessions and roles.\n",
    "src/session.ts": "export function createSession(user: User): Session {\n  return { role: user.role };\n}\n",
    "docs/roles.md": "# Roles\n\nThere is no default role. Tests declare the role they are about.\n",
}


@pytest.fixture(name="indexed", scope="session")
def indexed_fixture(tmp_path_factory):
    """A small work tree and its corpus, indexed once for the local user `ana`."""
    folder = tmp_path_factory.mktemp("indexed")
    for name, text in SHOP.items():
        (folder / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "shop" / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
        assert main(["index", "shop", "--project", "shop", "--no-semantic"]) == 0
    return folder


@pytest.fixture(name="shop")
def shop_fixture(indexed, tmp_path, monkeypatch):
    """A copy of it as the working folder; ana asks."""
    shutil.copytree(indexed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    adopt(load_settings(), "corpus")
    return tmp_path


def run(*args: str, capsys) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(args))
    return code, *capsys.readouterr()


def ask(*args: str, capsys) -> tuple[str, str]:
    """The block and the snapshot id of a question."""
    code, out, err = run("ask", "default role createSession", "--project", "shop", *args, capsys=capsys)
    assert code == 0, err
    return out, err.split("snapshot: ")[1].split()[0]
