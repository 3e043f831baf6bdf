"""Secrets that a rule of `data/redaction` finds in a text.

Reads: the bytes of a text. Gives: `rule_findings`, the byte ranges of its secrets; `is_telling`, whether a name suggests
a secret; `RULES_DIGEST`. The rules are data in the format of gitleaks: its own, and those that it lacks (`rules.toml`,
which explains the keys). A value of unknown format counts only if its name indicates a secret: high-entropy detectors
flag hashes and test data of code.

Note: every pattern runs in RE2, whose time is linear in the text. One pass over the literals of the patterns, and one for
all patterns without a literal, select the rules that can match at all.
"""

from __future__ import annotations

import base64
import math
import re
import tomllib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib import resources
from typing import Any

import re2

Finding = tuple[int, int, str]
"""Start and end in bytes, and kind."""

_FILES = tuple(
    (resources.files(f"{__name__.rpartition('.pipeline')[0]}.data") / "redaction" / name).read_text("utf-8")
    for name in ("gitleaks.toml", "rules.toml")
)
RULES_DIGEST = sha256("\0".join(_FILES).encode()).hexdigest()[:12]
"""Identifies the rules, so that a corpus that was masked by others is known."""
_OWN = tomllib.loads(_FILES[1])
KEY_EDGES = "|".join(_OWN["parts"][name] for name in ("FENCE", "UNENCRYPTED"))
"""The pattern of texts in which a private key may begin or end."""

_END = re.compile(rb"[\w=%~-]*(?:\.[\w=%~-]{8,})*")
"""The rest of a word that begins with a secret; a short part after a dot is the end of a file name."""
_QUOTED_END = {quote: re.compile(b"[^\\s%c]*%c" % (quote, quote)) for quote in b"\"'`"}
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]*")
_IMAGE = re2.compile(r"[A-Za-z0-9+/]{400,}")
"""No token is that long without another character: it is an image or other data, and what looks like a token in it is
none."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """A rule with its patterns compiled; `rules.toml` says what each means."""

    kind: str
    pattern: Any
    groups: Sequence[int]
    entropy: float
    all: tuple[Any, ...]
    none: Any
    none_of_match: Any
    decoded: Any
    none_of_decoded: Any
    context: bytes

    def findings(self, data: bytes) -> Iterator[Finding]:
        """The secrets in a text that contains `context`; the search resumes after each."""
        at = 0 if self.context in data else len(data) + 1
        while at <= len(data) and (match := self.pattern.search(data, at)):
            start = -1
            for group in self.groups:
                start, at = match.span(group)
                if start >= 0:
                    break
            if _accepts(self, data[start:at]) and not (self.none_of_match and self.none_of_match.search(match[0])):
                at = _end(data, start, at)
                yield start, at, self.kind


def _end(data: bytes, start: int, end: int) -> int:
    """The end of the word, or of the quoted word, that begins with a secret."""
    quoted = _QUOTED_END.get(data[start - 1]) if start else None
    if quoted and (match := quoted.match(data, end)):
        return match.end() - 1
    return _END.match(data, end).end()  # type: ignore[union-attr]  # it matches nothing, too


@lru_cache(maxsize=4096)
def _accepts(rule: _Rule, secret: bytes) -> bool:
    if rule.none.search(secret) or not all(pattern.search(secret) for pattern in rule.all):
        return False
    if rule.decoded:
        plain = _decoded(secret)
        if not rule.decoded.search(plain) or rule.none_of_decoded.search(plain):
            return False
    return not rule.entropy or _entropy(secret) >= rule.entropy


def _entropy(secret: bytes) -> float:
    counts = Counter(secret).values()
    return -sum(n / len(secret) * math.log2(n / len(secret)) for n in counts)


def _decoded(secret: bytes) -> bytes:
    word = _BASE64.match(secret)[0].translate(bytes.maketrans(b"-_", b"+/"))  # type: ignore[index]  # likewise
    whole = word[: len(word) - (len(word) % 4 == 1)]
    return base64.b64decode(whole + b"=" * (-len(whole) % 4))


def rule_findings(data: bytes) -> list[Finding]:
    """The secrets that the rules find, the preferred rule first; they may overlap."""
    rules, literals, plain, numbers = _rules()
    matched = {*(literals.Match(data, potential=True) or ())}.difference(numbers)
    matched |= {numbers[at] for at in plain.Match(data) or ()}
    found = [finding for number in sorted(matched, reverse=True) for finding in rules[number].findings(data)]
    images = [match.span() for match in _IMAGE.finditer(data)] if found else []
    starts = [start for start, _ in images]
    return [one for one in found if not (n := bisect_left(starts, one[0])) or images[n - 1][1] <= one[0]]


@cache
def _rules() -> tuple[list[_Rule], Any, Any, list[int]]:
    """Every rule, a filter by the literals of their patterns, and a set of the patterns that have none, with their numbers.

    A scan for each of these would take fifteen times as long as the set.
    """
    gitleaks, own = tomllib.loads(_FILES[0]), _OWN
    values, parts = own["values"], own["parts"]
    given = [rule for rule in (*gitleaks["rules"], *own["rules"]) if rule["id"] not in own["extend"]["disabledRules"]]
    options = re2.Options()
    options.max_mem = 1 << 26
    literals = re2.Filter()
    for rule in given:
        literals.Add(_whole(rule["regex"], parts), options)
    literals.Compile()
    rules = [_rule(rule, literals.re(number), _value(rule, values)) for number, rule in enumerate(given)]
    plain, numbers = re2.Set.SearchSet(options), literals.Match("", potential=True)
    for number in numbers:
        plain.Add(rules[number].pattern.pattern)
    plain.Compile()
    return rules, literals, plain, numbers


def _rule(rule: Mapping[str, Any], pattern: Any, value: Mapping[str, Any]) -> _Rule:
    return _Rule(
        rule["id"],
        pattern,
        [rule["secretGroup"]] if "secretGroup" in rule else [*range(1, pattern.groups + 1), 0],
        rule.get("entropy", value["entropy"]),
        tuple(map(re2.compile, (*rule.get("all", ()), *value["all"]))),
        _any([*rule.get("none", ()), *value["none"]]),
        _any(rule["noneOfMatch"]) if "noneOfMatch" in rule else None,
        re2.compile(rule["decoded"]) if "decoded" in rule else None,
        _any([rule["noneOfDecoded"]] if "noneOfDecoded" in rule else ()),
        rule.get("context", "").encode(),
    )


def _whole(regex: str, parts: Mapping[str, str]) -> str:
    for name, part in parts.items():
        regex = regex.replace(f"<{name}>", part)
    return regex


def _value(rule: Mapping[str, Any], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The condition that a rule names, together with those that it extends."""
    whole: dict[str, Any] = {"all": [], "none": [], "entropy": 0.0}
    name = rule.get("value")
    while name:
        value = values[name]
        whole["all"] += value.get("all", ())
        whole["none"] += value.get("none", ())
        whole["entropy"] = max(whole["entropy"], value.get("entropy", 0.0))
        name = value.get("extends")
    return whole


@cache
def _compiled(pattern: str) -> Any:
    return re2.compile(pattern)


def _any(patterns: Sequence[str]) -> Any:
    """One pattern for any of several; without any, one that matches nothing."""
    return _compiled("|".join(f"(?:{pattern})" for pattern in patterns) or r"[^\s\S]")


def is_telling(name: str) -> bool:
    """Whether a name indicates that its value may be a secret."""
    return bool(_telling().search(name))


@cache
def _telling() -> Any:
    return re2.compile(f"(?i){_OWN['parts']['NAME']}")
