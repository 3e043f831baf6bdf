"""Git repositories that tests write."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str, stdin: bytes = b"") -> str:
    """What a Git command prints, with none of this user's settings but dates; it fails where the command does."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.endswith("_DATE")}
    environment |= {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], input=stdin, capture_output=True, check=True, env=environment
    )
    return done.stdout.decode().strip()


def committed(folder: Path) -> Path:
    """The folder, as a repository with one commit of all its files."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "one")
    return folder
