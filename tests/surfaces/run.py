"""The HTML pages in a headless Chromium: no error on the console, no request to any host, nothing that axe finds,
and every citation of a report opens its evidence.

    make surfaces          (CHROMIUM names the browser; without one the check is skipped, and says so)

Pages: the report of a snapshot for an auditor and for a caller, and of a run. Each is loaded from a file, light and dark, wide
and as narrow as a phone, and without scripts as well.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.demo import run_demo

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SIZES = ((1280, 900), (390, 844))
LEFT_OUT = ("file", "data", "about", "blob")
"""Schemes that reach no host."""


def pages(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every page by name, made of the bundled demo."""
    run_demo(folder, semantic=False, progress=False, say=lambda _: None)
    os.chdir(folder)
    snapshots = json.loads(_printed("log", "-n", "0", "--json"))
    shown = [row for row in snapshots if row["status"] == "ok"]
    run = "run-" + shown[0]["snapshot_id"].split("-")[2]
    os.environ["SCOPED_RETRIEVAL_PRINCIPAL"] = "ana"
    for name, command in {
        "report of a snapshot": ("show", shown[0]["snapshot_id"], "--as", "html"),
        "report of a run": ("show", run, "--as", "html"),
    }.items():
        file = folder / f"{name.replace(' ', '-')}.html"
        _printed(*command, "--out", str(file))
        yield name, file
    yield "report of a snapshot, for its caller", Path(__file__).parents[1] / "golden" / "report_caller.html"


def _printed(*arguments: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as said:
        code = main(list(arguments))
    if code:
        raise SystemExit(f"{' '.join(arguments)} ended with {code}: {said.getvalue()}")
    return out.getvalue()


def faults(context: Any, file: Path, *, scripts: bool) -> list[str]:
    """What is wrong with a page."""
    found: list[str] = []
    page: Page = context.new_page()
    page.on(
        "console",
        lambda message: found.append(f"console: {message.text}") if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on(
        "request", lambda asked: None if asked.url.split(":")[0] in LEFT_OUT else found.append(f"request: {asked.url}")
    )
    page.goto(file.as_uri(), wait_until="load")
    if scripts:
        for violation in Axe().run(page).response["violations"]:
            nodes = ", ".join(str(node["target"]) for node in violation["nodes"][:3])
            found.append(f"axe {violation['id']} ({violation['impact']}): {violation['help']}: {nodes}")
    for href in page.locator('pre a[href^="#item-"]').evaluate_all("links => links.map(a => a.getAttribute('href'))"):
        page.locator(f'pre a[href="{href}"]').click()
        if not page.locator(f"{href} details .facts").is_visible():
            found.append(f"the citation {href} opens no evidence")
    wide = (
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") if scripts else 0
    )
    if wide > 0:
        found.append(f"wider than the window by {wide} pixels")
    page.close()
    return found


def checked(browser: Any, file: Path) -> Mapping[str, list[str]]:
    """The faults of a page by how it was looked at; empty lists left out."""
    found: dict[str, list[str]] = {}
    for scheme in ("light", "dark"):
        for width, height in SIZES:
            context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
            found[f"{scheme}, {width} pixels"] = faults(context, file, scripts=True)
            context.close()
    context = browser.new_context(java_script_enabled=False)
    found["without scripts"] = faults(context, file, scripts=False)
    context.close()
    return {how: wrong for how, wrong in found.items() if wrong}


def run() -> int:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("skipped: no Chromium; CHROMIUM=/path/to/it make surfaces")
        return 0
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["SCOPED_RETRIEVAL_PRINCIPAL"] = "ana"
        os.environ["XDG_CONFIG_HOME"] = folder
        with playwright.chromium.launch(executable_path=chromium, args=list(FLAGS)) as browser:
            print(f"Chromium {browser.version}")
            for name, file in pages(Path(folder)):
                found = checked(browser, file)
                wrong += len(found)
                print(f"{'ok   ' if not found else 'wrong'} {name} ({file.stat().st_size:,} bytes)")
                for how, said in found.items():
                    for one in said:
                        print(f"      {how}: {one}")
        os.chdir("/")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run())
