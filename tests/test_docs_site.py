"""The documentation site: generated pages are current, every page is reached, links resolve, and snippets are real."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from golden_file import expect_golden
from reference_pages import (
    commands,
    commands_part,
    flags,
    gates_part,
    python_part,
    settings_part,
    with_languages,
    written_by_hand,
)
from scoped_retrieval.pipeline.requests.fields import columns_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^( *)```([a-z]*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def snippets(*languages: str) -> list[Any]:
    return [
        pytest.param(body, id=f"{named(page)}:{number}")
        for page in PAGES
        for number, (_, language, body) in enumerate(FENCE.findall(page.read_text(encoding="utf-8")), 1)
        if language in languages
    ]


@cache
def known_commands() -> dict[str, Any]:
    return commands()


@pytest.mark.golden
@pytest.mark.parametrize(
    ("page", "part"),
    [
        ("commands.md", commands_part),
        ("settings.md", settings_part),
        ("gates.md", gates_part),
        ("python.md", python_part),
    ],
)
def test_a_reference_page_is_what_the_code_declares(page, part):
    path = DOCS / "reference" / page
    expect_golden(path, written_by_hand(path.read_text(encoding="utf-8")) + part())


@pytest.mark.golden
def test_the_page_of_sources_names_every_language_that_is_parsed():
    path = DOCS / "sources.md"
    expect_golden(path, with_languages(path.read_text(encoding="utf-8")))


def test_every_page_is_in_the_navigation_once():
    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [page for value in (entry.values() if isinstance(entry, dict) else entry) for page in pages(value)]

    listed = pages(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    assert sorted(listed) == [page.relative_to(DOCS).as_posix() for page in sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_inside_the_repository_resolves(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), target
        if anchor:
            heads = re.findall(r"^#+ +(.*)$", FENCE.sub("", file.read_text(encoding="utf-8")), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}
            assert anchor in slugs, target


@pytest.mark.parametrize("body", snippets("python"))
def test_python_snippets_parse_and_import_what_there_is(body):
    tree = ast.parse(body)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scoped_retrieval"):
            module = __import__(node.module or "", fromlist=[alias.name for alias in node.names])
            assert [a.name for a in node.names if not hasattr(module, a.name)] == []


@pytest.mark.parametrize("body", snippets("json"))
def test_json_snippets_parse_and_requests_are_valid(body):
    rows = [json.loads(body)] if body.count("\n{") == 0 else [json.loads(line) for line in body.splitlines() if line]
    for row in rows:
        if "question" in row:
            assert columns_of(row, "snippet")["question"] == row["question"]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_command_in_a_snippet_exists_with_its_flags(page):
    for _, language, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if language not in ("", "console", "sh", "yaml"):
            continue
        for line in re.sub(r"\\\n", " ", body).splitlines():
            for call in re.findall(r"(?:^|[\s/])scoped-retrieval ((?!:)[^|>#]*)", line):
                check_call(call, f"{named(page)}: {line.strip()}")


def check_call(call: str, where: str) -> None:
    try:
        words = shlex.split(call.split(" && ")[0].split("; ")[0])
    except ValueError:
        return  # usage lines such as `[question]`
    known = known_commands()
    if not words or words[0].startswith("-"):
        return
    name = next((n for n in (" ".join(words[:2]), words[0]) if n in known), None)
    assert name, f"no such command: {where}"
    used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)} - {"--help", "-h"}
    assert used <= flags(known[name]), f"unknown flags {used - flags(known[name])}: {where}"
