"""Denials and grants of permissions: what they are about, and whether an event says yes.

Gives `grants`, `action_of`, and `ABOUT_PERMISSIONS`, the kinds of events that deny or grant.

Note: what is unclear grants nothing. A confirmation in words must begin with a yes and hold no negation, no condition and no
question; what it is about may be asked again, what it was taken for by mistake may not be undone.
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
_YES = re.compile(
    r"(?:(?:yes|yep|yeah|yup|y|ok|okay|sure|fine|alright|go ahead|go for it|go on|please do|do it|approved?|allow(?:ed)?|grant(?:ed)?|"
    r"accept(?:ed)?|confirm(?:ed)?|agreed?|proceed|continue|lgtm|correct|of course|absolutely|true|permission granted|"
    r"you (?:may|can)|i (?:approve|allow|confirm|agree|accept|grant))\b|\U0001f44d|\u2705|\u662f|\u597d|\u53ef\u4ee5|\u540c\u610f|\u6279\u51c6|\u5141\u8bb8|\u786e\u8ba4|\u884c)"
)
"""How an answer that says yes begins; the last ones are Chinese."""
_NO = re.compile(
    r"\b(?:no|not|nope|nah|never|none|dont|den(?:y|ied)|reject\w*|refus\w*|declin\w*|disallow\w*|forbid\w*|stop|cancel\w*|wait|hold|but|except|unless|"
    r"only|if|until|false|revoke\w*)\b|n't\b|\?|[\uff1f\u4e0d\u522b\u52ff\u62d2\u4f46]|\U0001f44e|\u274c"
)
"""What makes an answer a no, or unclear."""


def action_of(payload: Record, command: str | None) -> str | None:
    """What a permission is about, besides its subject: the tool, the action and the command, as far as the event names them."""
    named = (payload.text("tool", "toolName"), payload.text("action", "operation"), command)
    words = list(dict.fromkeys(word for word in named if word))
    rest = [word for word in words[:-1] if not words[-1].startswith(word)]
    return " ".join([*rest, *words[-1:]]) or None


def grants(kind: str, payload: Record, text: str | None) -> bool:
    """Whether an event gives a permission. A grant does unless it says no; a confirmation where it says yes, or says nothing at all."""
    if kind not in ("permission.granted", "user.confirmation"):
        return False
    decided = [_decided(value) for name in _DECIDED if (value := payload.value(name)) is not None]
    if not all(decided):
        return False
    if not text or not text.strip():
        return True
    if decided or kind == "permission.granted":
        return not _NO.match(_plain(text))
    return _says_yes(text)


def _decided(value: Any) -> bool:
    return value is True or (isinstance(value, str) and _says_yes(value))


def _says_yes(text: str) -> bool:
    plain = _plain(text)
    return bool(_YES.match(plain)) and not _NO.search(plain)


def _plain(text: str) -> str:
    return text.strip().strip("\"'*_`").lower().replace("\u2019", "'")
