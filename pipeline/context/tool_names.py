"""What a tool does, by its name, where no one states it.

Gives `capability_of`.

Note: a guess fails closed. A name that says an effect beyond the work tree (`deploy_production`, `mcp__github__create_issue`) is
`external`, which no phase shows, and one that says nothing is `other`, which only phases that show tools that write and run do. A tool of the
web or of MCP is one that reads (`external_read`) only if its name says so and says no change.
"""

from __future__ import annotations

import re

__all__ = ["capability_of"]

_OUTSIDE = re.compile(r"(?i)^mcp|web|fetch|browser|http|url")
_READS_OUTSIDE = re.compile(r"(?i)fetch|search|read|view|get|list|find|query|lookup|describe")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EFFECT = re.compile(
    r"(?i)deploy(?!ments)|publish|destroy|production|terminat|rollback|rollout|refund|purge|wipe|revoke|"
    r"provision|shutdown|truncate|merge_?(pull|pr\b)"
)
_EFFECTS = frozenset(
    ("send", "push", "email", "pay", "charge", "transfer", "invite", "approve", "submit", "upload", "restart", "notify", "drop")
)  # fmt: skip
_NOUNS_TOO = frozenset(("release", "post"))
"""Effects, unless they follow a verb that reads: `get_release`."""
_CHANGES = frozenset(
    (*_EFFECTS, *_NOUNS_TOO, "create", "update", "delete", "remove", "add", "set", "write", "edit", "patch", "put", "merge", "close", "open",
     "assign", "move", "rename", "replace", "insert", "comment", "reply", "fork", "run", "exec", "execute", "click", "type", "fill", "cancel",
     "trigger", "start", "stop", "kill", "reset", "enable", "disable", "lock", "archive", "rerun", "request", "mark", "dismiss", "subscribe")
)  # fmt: skip
_READING = frozenset(("get", "list", "read", "search", "find", "view", "show", "query", "describe", "lookup", "fetch"))
_ERASING = frozenset(("delete", "remove"))
_OF_FILES = re.compile(r"(?i)file|path|line|cell|folder|dir|text|block|symbol")
_CAPABILITY = (
    ("write", re.compile(r"patch|(?<![a-z])(write|edit|create|delete|move|replace|insert)|multiedit|notebook")),
    ("search", re.compile(r"search|grep|glob|(?<![a-z])(find|list|ls(?![a-z]))")),
    ("run", re.compile(r"(?<![a-z])run|bash|shell|(?<![a-z])exec|terminal|command")),
    ("read", re.compile(r"(?<![a-z])(read|view|open|cat(?![a-z])|get)")),
    ("ask_user", re.compile(r"(?<![a-z])ask(?![a-z])|confirm|question")),
)


def capability_of(name: str) -> str:
    """The capability that a tool of this name most likely has; `other` where its name says nothing."""
    own = name.split("__", 2)[2] if name.lower().startswith("mcp__") and name.count("__") > 1 else name
    words = [word.lower() for word in _WORDS.findall(own)]
    said = set(words)
    reads = bool(words) and words[0] in _READING
    effect = bool(_EFFECT.search(own)) or bool(said & _EFFECTS) or (bool(said & _NOUNS_TOO) and not reads)
    if _OUTSIDE.search(name):
        changes = effect or bool(said & (_CHANGES - (_NOUNS_TOO if reads else frozenset())))
        return "external_read" if _READS_OUTSIDE.search(own) and not changes else "external"
    if effect or (said & _ERASING and not _OF_FILES.search(own)):
        return "external"
    return next((word for word, pattern in _CAPABILITY if pattern.search("_".join(words))), "other")
