"""Denials and grants of permissions: what they are about, and whether an event says yes.

Gives `grants`, `action_of`, and `ABOUT_PERMISSIONS`, the kinds of events that deny or grant.

Note: what is unclear grants nothing. A confirmation in words must say yes and nothing else: every word of it is one of a yes, one
that adds nothing (`please`, `it`), or names what the event is about. That may be asked again; what was taken for a yes by mistake may
not be undone.
"""

from __future__ import annotations

import re
from typing import Any

from ..sources.jsonl import Record

__all__ = ["ABOUT_PERMISSIONS", "action_of", "grants"]

ABOUT_PERMISSIONS = ("permission.denied", "permission.granted", "user.confirmation")
_DECIDED = (
    "approved", "granted", "allowed", "confirmed", "accepted", "approve", "allow", "decision", "outcome", "status", "answer", "response", "choice",
    "behavior", "result",
)  # fmt: skip
"""Fields that say how it was decided: true or false, or a word."""
_YES = frozenset((
    "yes", "yep", "yeah", "yup", "y", "ok", "okay", "sure", "fine", "alright", "approve", "approved", "allow", "allowed", "grant", "granted", "accept", "accepted", "confirm",
    "confirmed", "agree", "agreed", "proceed", "continue", "lgtm", "correct", "course", "absolutely", "true", "go", "ahead", "do",
    "\U0001f44d", "\u2705", "\u662f", "\u597d", "\u53ef\u4ee5", "\u540c\u610f", "\u6279\u51c6", "\u5141\u8bb8", "\u786e\u8ba4", "\u884c", "\u6ca1\u95ee\u9898",
))  # fmt: skip
"""Words that say yes; the last ones are Chinese."""
_BESIDE = frozenset((
    "i", "you", "we", "it", "this", "that", "them", "s", "is", "are", "the", "a", "all", "of", "to", "for", "in", "on", "with", "so", "may", "can", "now", "please", "always", "again", "thanks",
    "thank", "very", "much", "looks", "sounds", "good", "great", "perfect", "permission", "session", "run",
    "\u7684", "\u4e86", "\u5427", "\u554a", "\u4f60", "\u6211", "\u8bf7", "\u505a", "\u53bb", "\u7ee7\u7eed", "\u6267\u884c", "\u8c22\u8c22",
))  # fmt: skip
"""Words that take nothing from a yes and add no condition."""
_WORD = re.compile(
    "|".join(sorted((word for word in _YES | _BESIDE if ord(word[0]) > 0x2000), key=len, reverse=True))
    + r"|[a-z0-9]+|[^\W_]|[?\uff1f\U0001f300-\U0001faff\u2600-\u27bf]"
)
"""Words, those of Chinese as far as they are known, else its characters; signs that mean something."""
_NO = re.compile(
    r"\b(?:no|not|nope|nah|never|none|dont|den(?:y|ied)|reject\w*|refus\w*|declin\w*|disallow\w*|forbid\w*|stop|cancel\w*|wait|hold|but|except|unless|"
    r"only|if|until|false|revoke\w*)\b|n't\b|\?|[\uff1f\u4e0d\u522b\u52ff\u62d2\u4f46\u672a]|\u6ca1(?!\u95ee\u9898)|\U0001f44e|\u274c"
)
"""What makes an answer a no, or unclear, whatever it names."""


def action_of(payload: Record, command: str | None) -> str | None:
    """What a permission is about, besides its subject: the tool, the action and the command, as far as the event names them."""
    named = (payload.text("tool", "toolName"), payload.text("action", "operation"), command)
    words = list(dict.fromkeys(word for word in named if word))
    rest = [word for word in words[:-1] if not words[-1].startswith(word)]
    return " ".join([*rest, *words[-1:]]) or None


def grants(kind: str, payload: Record, text: str | None, about: str | None) -> bool:
    """Whether an event gives a permission. A grant does unless it says no; a confirmation where it says yes, or says nothing at all.
    `about` is the action that it names.
    """
    if kind not in ("permission.granted", "user.confirmation"):
        return False
    decided = [_decided(value) for name in _DECIDED if (value := payload.value(name)) is not None]
    if not all(decided):
        return False
    if not text or not text.strip():
        return True
    if decided or kind == "permission.granted":
        return not _says_no(text)
    return _says_yes(text, f"{payload.identifier('subject', 'requestId')} {about}")


def _decided(value: Any) -> bool:
    return value is True or (isinstance(value, str) and _says_yes(value, "once"))


def _says_yes(text: str, named: str) -> bool:
    """Whether a text says yes and nothing else; words of `named` are what it is about."""
    words = set(_WORD.findall(text.lower()))
    known = words <= _YES | _BESIDE | set(_WORD.findall(named.lower()))
    return bool(words & _YES) and known and not _says_no(text)


def _says_no(text: str) -> bool:
    return bool(_NO.search(text.lower().replace("\u2019", "'")))
