"""Build what would be released and use it without the checkout, on every supported Python: `make release-check`.

The wheel and the sdist are each installed into an empty environment of each Python, in a temporary folder. There the demo
runs, and a question is asked of a small folder and its snapshot replayed and verified. A supported Python that this machine
lacks is an error unless `--present` is given; either way it is named.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SUPPORTED = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if name.startswith("Programming Language")]
EXTRAS = "semantic,viz,fast"
"""What the demo shows."""


def main() -> int:
    arguments = parsed()
    with tempfile.TemporaryDirectory(prefix="release-") as folder:
        work = Path(folder)
        built = build(work / "dist")
        missing = []
        for version in arguments.python or SUPPORTED:
            python = shutil.which(f"python{version}")
            if python is None:
                missing.append(version)
                continue
            for archive in built:
                print(f"Python {version}, {archive.name}", flush=True)
                check(python, archive, work / f"{version}-{archive.suffix[1:]}", whole=archive.suffix == ".whl")
    for version in missing:
        print(f"Python {version}: not checked, python{version} is not on the PATH", file=sys.stderr)
    return 1 if missing and not arguments.present else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", metavar="3.N", help="this version only; repeatable")
    parser.add_argument("--present", action="store_true", help="pass although a supported Python is not installed")
    return parser.parse_args()


def build(dist: Path) -> tuple[Path, Path]:
    """The wheel, made from the sdist, and the sdist."""
    run(sys.executable, "-m", "build", "--outdir", str(dist), str(ROOT), cwd=ROOT)
    wheel, sdist = next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))
    for archive in (wheel, sdist):
        if f"-{PROJECT['version']}" not in archive.name:
            raise SystemExit(f"Expected version {PROJECT['version']} in the name of {archive.name}")
    return wheel, sdist


def check(python: str, archive: Path, folder: Path, *, whole: bool) -> None:
    """Install one archive and use it; `whole` adds the semantic lane."""
    run(python, "-m", "venv", str(folder / "venv"), cwd=folder.parent)
    scripts = folder / "venv/bin"
    pip = (str(scripts / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    wanted = f"scoped-retrieval[{EXTRAS}] @ {archive.as_uri()}" if whole else str(archive)
    run(*pip, "--constraint", str(ROOT / "constraints.txt"), wanted, cwd=folder)
    command = str(scripts / "scoped-retrieval")
    run(command, "--version", cwd=folder)
    run(command, "demo", *(() if whole else ("--no-semantic",)), cwd=folder)
    smoke(command, folder / "smoke")


def smoke(command: str, folder: Path) -> None:
    """A folder of one document: index, ask, then replay and verify the snapshot that the answer names."""
    (folder / "notes").mkdir(parents=True)
    (folder / "notes/retries.md").write_text("# Retries\n\nPayments are retried three times.\n", encoding="utf-8")
    place = {"SCOPED_RETRIEVAL_PRINCIPAL": "ana", "XDG_CONFIG_HOME": str(folder / "config")}
    run(command, "index", "notes", "--project", "notes", "--no-semantic", cwd=folder, **place)
    asked = run(command, "ask", "How often are payments retried?", "--project", "notes", cwd=folder, **place)
    if "retried three times" not in asked:
        raise SystemExit(f"Expected the document in the answer, got:\n{asked}")
    named = re.search(r"retr-snap-[0-9a-z]+-\d+", asked)
    if named is None:
        raise SystemExit(f"Expected the id of a snapshot in the answer, got:\n{asked}")
    again = run(command, "show", named.group(), cwd=folder, **place)
    if "retried three times" not in again:
        raise SystemExit(f"Expected the same block from replay, got:\n{again}")
    run(command, "verify", cwd=folder, **place)


def run(*command: str, cwd: Path, **environment: str) -> str:
    """Standard output and error of a command that has to succeed, without the environment of this one."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SCOPED_RETRIEVAL_", "PYTHON", "VIRTUAL_ENV"))}
    cwd.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=cwd,
        env=kept | environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
