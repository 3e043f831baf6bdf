"""The capability of a tool by its name, if it is not stated.

Gives `capability_of`, `narrowed`.

Note: the guess fails closed. A name reads only if its verb is one of `_READING` (its first word, after any nouns of
`_NOUNS`: `pull_request_read`), and no word joins a second act to it or is one; other words after the verb count as
nouns (`get_deployment`). A tool of MCP or of the web that does not read is `external`, which no phase shows, as is a
name that states an effect beyond the work tree. Any other name is `other`, shown only in phases that show tools that
write and run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..parsing import values
from ..sources.jsonl import Record

__all__ = ["capability_of", "narrowed"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_RUNS = re.compile(r"[A-Z]{2,}|[a-z]+")
"""Words of names in no known style: `findANDmodify`."""
_COMPOUND = re.compile(r"\b(pull|merge|look) (requests?|up)\b")
_OPENS_A_FILE = re.compile(r"open files?")
_READING = {
    **dict.fromkeys(("get", "read", "view", "show", "describe", "lookup", "fetch", "retrieve", "inspect", "cat", "webfetch"), "read"),
    **dict.fromkeys(("search", "find", "list", "ls", "grep", "glob", "query", "websearch"), "search"),
}  # fmt: skip
"""The verbs that read, with their capability in the work tree."""
_JOINS = frozenset(("and", "or", "then", "plus", "to", "into"))
_ACTING = frozenset(
    ("add", "append", "apply", "approve", "assign", "ban", "cancel", "clear", "close", "create", "decrease", "delete", "destroy", "disable", "drop",
     "edit", "enable", "erase", "eval", "evaluate", "exec", "execute", "increase", "insert", "install", "invoke", "kick", "kill", "modify", "move",
     "overwrite", "publish", "purge", "reject", "remove", "rename", "replace", "reset", "revoke", "save", "send", "set", "submit", "terminate",
     "truncate", "unarchive", "uninstall", "unlock", "unpin", "unsubscribe", "update", "upsert", "wipe", "write", "acknowledge", "activate",
     "deactivate", "decrement", "dismiss", "enqueue", "increment", "mark", "rebuild", "recreate", "redeploy", "regenerate", "register", "reindex",
     "reopen", "subscribe", "toggle", "undelete", "undo", "unmute", "unregister")
)  # fmt: skip
"""Verbs that are seldom nouns: no name that has one reads. `get_email`, `get_comment` and `get_release` read."""
_ACTS_ON = re.compile(
    r"\b(?:deploy|migrate|promote|reload|restart|restore)\b(?! (?:status|state|logs?|ids?|info|details?|history|times?|counts?|config|urls?|keys?|hooks?|points?|previews?)$|$)"
)
"""Verbs that are nouns at the end of a name, and before one of these words: `get_deploy_status`."""
_REMOTE = frozenset(("remote", "remotes", "origin", "upstream", "refs", "branch", "branches", "tags"))
"""Objects of `fetch` in a repository."""
_BRANDS = re.compile(r"(?i)git(?:hub|lab|ea|book|kraken|lens)|bitbucket")
"""Names of services whose capitals do not begin a word: `GitHub` is not `git`."""
_REQUESTS = frozenset(("pr", "prs", "pullrequest", "pullrequests", "mergerequest", "mergerequests"))
_SERVICES = frozenset(("web", "http", "https", "url", "github", "gitlab", "bitbucket", "slack", "jira", "confluence", "notion"))  # fmt: skip
_NOUNS = _REQUESTS | _SERVICES | frozenset(("api", "code", "codebase", "docs", "file", "git", "issue", "memory", "notebook", "repo", "symbol", "workspace"))  # fmt: skip
"""Nouns that may precede the verb of a name."""
_OUTSIDE = _SERVICES | frozenset(("browser", "fetch", "webfetch", "websearch"))
_EFFECT = re.compile(
    r"deploy|publish|destroy|production|terminat|rollback|rollout|refund|purge|wipe|revoke|provision|shutdown|truncate"
)
_EFFECTS = _REQUESTS | frozenset(
    ("send", "push", "email", "pay", "charge", "transfer", "invite", "approve", "submit", "upload", "restart", "notify", "drop", "release", "post")
)  # fmt: skip
_ERASING = frozenset(("delete", "remove"))
_OF_FILES = frozenset(("file", "files", "path", "line", "lines", "cell", "folder", "dir", "directory", "text", "block", "symbol"))  # fmt: skip
_CAPABILITY = (
    ("write", frozenset(("patch", "write", "edit", "multiedit", "editor", "create", "delete", "remove", "move", "replace", "insert", "notebook"))),
    ("run", frozenset(("run", "bash", "shell", "powershell", "exec", "execute", "terminal", "command"))),
)  # fmt: skip
_ASKS = frozenset(("ask", "confirm", "confirmation", "question", "questions", "input"))
_OF_A_QUESTION = _ASKS | frozenset(("user", "human", "followup", "for", "request", "the", "tool"))
_OWN = frozenset(("todowrite", "todoread", "updateplan", "enterplanmode", "exitplanmode"))
"""Tools of Claude Code and Codex for the agent's own list and plan, which the user sees: they change no file."""


def capability_of(name: str) -> str:
    """The likely capability of a tool of this name; `other` if the name does not indicate one."""
    name = _BRANDS.sub(lambda brand: brand[0].lower(), name)
    of_mcp = name.lower().startswith("mcp")
    parts = name.split("__", 2)
    own = parts[2] if parts[0].lower() == "mcp" and len(parts) > 2 else name
    words = _words(own)
    word_set, joined = frozenset(words), "".join(words)
    fetches = "fetch" in words and _fetches(words, _words(name.removesuffix(own)))
    reads = _reads(words, own) if own.isascii() and not fetches else None
    if of_mcp or word_set & _OUTSIDE:
        return "external_read" if reads else "external"
    if reads:
        return reads
    if joined in _OWN or (word_set & _ASKS and word_set <= _OF_A_QUESTION):
        return "ask_user"
    if _EFFECT.search(joined) or word_set & _EFFECTS or (word_set & _ERASING and not word_set & _OF_FILES):
        return "external"
    return next((capability for capability, verbs in _CAPABILITY if word_set & verbs), "other")


def narrowed(capability: str, tool: Record) -> str:
    """A guess restricted by MCP annotations: a tool annotated as changing or destroying something does not read.

    Note: annotations are hints of an untrusted server, so none makes a tool visible.

    Raises:
        InputError: annotations are not an object, or a hint is not a boolean.
    """
    hints = tool.mapping("annotations")
    only_reads, destroys = (_hint(hints, name) for name in ("readOnlyHint", "destructiveHint"))
    acts = only_reads is False or destroys is True
    return "external" if acts and capability in ("read", "search", "external_read") else capability


def _hint(hints: Record, name: str) -> bool | None:
    value = hints.value(name)
    return None if value is None else values.flag(value, hints.place(name))


def _words(name: str) -> list[str]:
    """The words of a name in lower case, with `pull request` and the like as one word."""
    text = " ".join(word.lower() for word in _WORDS.findall(name))
    return ("read file" if _OPENS_A_FILE.fullmatch(text) else _COMPOUND.sub(r"\1\2", text)).split()


def _fetches(words: Sequence[str], server: Sequence[str]) -> bool:
    """Whether a tool of these words updates a Git repository: `fetch` after `git`, or before one of `_REMOTE`."""
    first, last = words.index("fetch"), len(words) - 1 - words[::-1].index("fetch")
    return "git" in (*server, *words[:last]) or not _REMOTE.isdisjoint(words[first:])


def _reads(words: Sequence[str], name: str) -> str | None:
    """`read` or `search` for a name that reads; None if it does something else, or may."""
    verb = next((word for word in words if word not in _NOUNS), "")
    acts = (_JOINS | _ACTING).intersection((*words, *map(str.lower, _RUNS.findall(name))))
    return None if acts or _ACTS_ON.search(" ".join(words)) else _READING.get(verb)
