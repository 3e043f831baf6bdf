"""A Git repository in which every setting that Git may execute writes a marker file.

`hostile_repository` is the fixture; `Hostile.ran()` names what was executed. An object of its history is missing, and is
promised by remotes whose URL or helper is a command.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from repositories import git

HOOKS = (
    "applypatch-msg", "commit-msg", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit",
    "post-applypatch", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-receive", "post-rewrite", "post-update",
    "pre-applypatch", "pre-auto-gc", "pre-commit", "pre-merge-commit", "pre-push", "pre-rebase", "pre-receive", "prepare-commit-msg",
    "proc-receive", "push-to-checkout", "reference-transaction", "sendemail-validate", "update",
)  # fmt: skip
COMMANDS = (
    "add", "blame", "branch", "cat-file", "check-attr", "check-ignore", "config", "diff", "diff-files", "diff-index", "diff-tree", "for-each-ref", "log",
    "ls-files", "ls-tree", "rev-list", "rev-parse", "show", "status", "symbolic-ref",
)  # fmt: skip
KEYS = (
    "browser.b.cmd", "core.alternateRefsCommand", "core.askPass", "core.editor", "core.fsmonitor", "core.gitProxy", "core.pager", "core.sshCommand",
    "credential.helper", "diff.external", "diff.text.command", "diff.text.textconv", "difftool.d.cmd", "filter.text.clean", "filter.text.smudge",
    "filter.whole.process", "gpg.openpgp.program", "gpg.program", "gpg.ssh.defaultKeyCommand", "gpg.ssh.program", "gpg.x509.program", "guitool.g.cmd",
    "imap.tunnel", "interactive.diffFilter", "man.m.cmd", "merge.text.driver", "mergetool.m.cmd", "remote.origin.receivepack",
    "remote.origin.uploadpack", "sendemail.sendmailCmd", "sendemail.toCmd", "sequence.editor", "trailer.t.cmd", "trailer.t.command",
    "uploadpack.packObjectsHook", "web.browser",
    *(f"pager.{command}" for command in COMMANDS),
)  # fmt: skip
SHELL_KEYS = (*(f"alias.{command}" for command in (*COMMANDS, "st")), "submodule.sub.update")
PLAIN = {
    "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "protocol.allow": "always",
    "protocol.ext.allow": "always", "remote.local.promisor": "true", "remote.local.url": ".", "remote.helped.promisor": "true",
    "remote.helped.vcs": "ext", "log.showSignature": "true", "gpg.ssh.allowedSignersFile": "signers",
    "browser.path": ".", "help.format": "web", "status.submoduleSummary": "true",
    "submodule.sub.url": "ext::false", "submodule.sub.active": "true", "core.untrackedCache": "true", "gc.auto": "1", "maintenance.auto": "true",
}  # fmt: skip
SIGNATURES = ("PGP SIGNATURE", "SSH SIGNATURE", "SIGNED MESSAGE")


@dataclass(frozen=True)
class Hostile:
    """The work tree, a commit of its history, a blob that is missing, and the folder of markers."""

    folder: Path
    commit: str
    missing: str
    markers: Path

    def ran(self) -> list[str]:
        """Names of the settings and hooks that were executed since the last call."""
        found = sorted(path.name for path in self.markers.iterdir())
        for name in found:
            (self.markers / name).unlink()
        return found


def _program(place: Path, marker: Path) -> str:
    """An executable that writes a marker and fails; git writes to one of gpg, and would end by SIGPIPE if it never read."""
    place.parent.mkdir(parents=True, exist_ok=True)
    reads = "head -c 1 > /dev/null\n" if place.name.startswith("gpg.") else ""
    place.write_text(f"#!/bin/sh\n: > '{marker}'\n{reads}exit 1\n")
    place.chmod(0o755)
    return str(place)


def build(home: Path) -> Hostile:
    """A hostile repository below `home`."""
    folder, markers, bin_ = home / "hostile", home / "markers", home / "bin"
    (folder / "sub").mkdir(parents=True)
    markers.mkdir()
    git(folder, "init", "-q", "-b", "main")
    attributes = "*.py filter=text diff=text merge=text\n*.md filter=whole diff=text\n"
    files = {
        ".gitattributes": attributes,
        ".gitmodules": '[submodule "sub"]\n\tpath = m\n\turl = x\n\tupdate = !false\n',
    }
    for number in range(3):
        files |= {
            "a.py": f"def retry():\n    return {number}\n",
            "sub/b.py": "x = 1\n",
            "c.txt": "c\n",
            "AGENTS.md": "# Rules\n\nBe kind.\n",
        }
        for name, text in files.items():
            (folder / name).write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", f"Retry {number}")
    for kind in SIGNATURES:
        unsigned = git(folder, "commit-tree", "-p", "HEAD", "-m", kind, "HEAD^{tree}")
        header, message = git(folder, "cat-file", "commit", unsigned).split("\n\n", 1)
        signature = f"gpgsig -----BEGIN {kind}-----\n \n eA==\n -----END {kind}-----"
        text = f"{header}\n{signature}\n\n{message}\n"
        git(
            folder,
            "update-ref",
            "HEAD",
            git(folder, "hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode()),
        )
    missing = git(folder, "rev-parse", "main~5:a.py")
    (folder / ".git" / "objects" / missing[:2] / missing[2:]).unlink()
    config = {key: _program(bin_ / key, markers / key) for key in KEYS}
    config |= {key: f"!{_program(bin_ / key, markers / key)}" for key in SHELL_KEYS}
    config |= {
        "remote.origin.url": f"ext::{_program(bin_ / 'ext', markers / 'ext')}",
        "remote.helped.url": str(bin_ / "ext"),
    }
    config |= PLAIN | {"core.hooksPath": str(bin_ / "hooks")}
    for hook in HOOKS:
        for hooks in (bin_ / "hooks", folder / ".git" / "hooks"):
            _program(hooks / hook, markers / hook)
    lines = []
    for key, value in config.items():
        section, name = key.rsplit(".", 1)
        head, _, tail = section.partition(".")
        lines.append(f'[{head} "{tail}"]\n' if tail else f"[{head}]\n")
        lines.append(f'\t{name} = "{value}"\n')
    (folder / ".git" / "included").write_text("".join(lines))
    with (folder / ".git" / "config").open("a") as file:
        file.write("[include]\n\tpath = included\n")
    (folder / ".git" / "info" / "attributes").write_text(attributes)
    (folder / "a.py").write_text("def retry():\n    return 'changed'\n")
    for name in ("new.py", "c.txt"):
        (folder / name).write_text("y = 1\n")
    for same in ("sub/b.py", "AGENTS.md"):
        os.utime(folder / same, (0, 0))
    return Hostile(folder, git(folder, "rev-parse", "HEAD~1"), missing, markers)


@pytest.fixture(name="hostile_repository")
def hostile_repository_fixture(tmp_path: Path) -> Hostile:
    made = build(tmp_path)
    made.ran()
    return made
