"""What a tool does, by its name, where no one states it.

Gives `capability_of`.
"""

from __future__ import annotations

import re

__all__ = ["capability_of"]

_CAPABILITY = (
    ("external", re.compile(r"(?i)^mcp|web|fetch|browser|http|url")),
    ("write", re.compile(r"(?i)patch|write|edit|create|delete|move|replace|notebook|insert")),
    ("search", re.compile(r"(?i)search|grep|glob|find|list|ls\b")),
    ("run", re.compile(r"(?i)run|bash|shell|exec|terminal|command")),
    ("read", re.compile(r"(?i)read|view|open|cat|get")),
    ("ask_user", re.compile(r"(?i)(?<![a-z])ask|(?-i:Ask)|confirm|question")),
)


def capability_of(name: str) -> str:
    """The capability that a tool of this name most likely has; `other` where its name says nothing."""
    return next((word for word, pattern in _CAPABILITY if pattern.search(name)), "other")
