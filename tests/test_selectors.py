"""Source selectors and path globs: anchored, and judged on whole values."""

from __future__ import annotations

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.scope.selectors import glob_mask, selected

SOURCES = ["git:shop", "git:owner/shop", "memory:ana", "external:site/page", "security-review-of-marketing-site"]
CLASSES = ["workspace", "workspace", "memory", "external", "project-doc"]


def _picked(*selectors: str) -> list[str]:
    mask = selected(selectors, pa.array(CLASSES), pa.array(SOURCES))
    return [source for source, picked in zip(SOURCES, mask, strict=True) if picked]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("workspace", ["git:shop", "git:owner/shop"]),
        ("current-workspace", ["git:shop", "git:owner/shop"]),
        ("git:shop", ["git:shop"]),
        ("git:*", ["git:shop", "git:owner/shop"]),
        ("external:*", ["external:site/page"]),
        ("git:owner/", ["git:owner/shop"]),
        ("git:sho?", ["git:shop"]),
        ("git:sh?", []),
        ("git:?", []),
        ("git:shop?", []),
        ("git:owner?shop", ["git:owner/shop"]),
        ("marketing", []),
        ("git:sh.p", []),
        ("GIT:shop", []),
        ("", []),
    ],
)
def test_a_selector_is_an_origin_class_or_an_anchored_glob_on_the_source_id(selector, expected):
    assert _picked(selector) == expected


def test_no_list_of_selectors_picks_every_source_and_an_empty_list_none():
    assert selected(None, pa.array(CLASSES), pa.array(SOURCES)).all()
    assert not selected([], pa.array(CLASSES), pa.array(SOURCES)).any()


@pytest.mark.parametrize(
    ("glob", "matching"),
    [
        ("AGENTS.md", ["AGENTS.md"]),
        ("**/AGENTS.md", ["AGENTS.md", "docs/AGENTS.md", "docs/a/AGENTS.md"]),
        ("docs/*", ["docs/AGENTS.md", "docs/a+b.md"]),
        ("docs/", ["docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md"]),
        ("docs/**", ["docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md"]),
        ("docs/**/AGENTS.md", ["docs/AGENTS.md", "docs/a/AGENTS.md"]),
        ("docs/a+b.md", ["docs/a+b.md"]),
        ("AGENTS?md", ["AGENTS.md"]),
        ("docs", ["docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md"]),
        ("docs/a", ["docs/a/AGENTS.md"]),
        ("doc", []),
    ],
)
def test_a_path_glob_keeps_its_wildcards_inside_a_segment(glob, matching):
    paths = ["AGENTS.md", "docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md", "mydocs/x.md", None]
    mask = glob_mask(pa.chunked_array([paths[:2], paths[2:]]), [glob])
    assert [path for path, picked in zip(paths, mask, strict=True) if picked] == matching
