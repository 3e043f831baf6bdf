"""Prose of documentation, docstrings and messages against a word list and checks of proselint: `make prose`.

Note: `words.toml` counts private words that are left, so that old text need not change at once and new text cannot add to
it. Works offline.
"""

from __future__ import annotations

import re
import sys
import tomllib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from prose_text import Prose, everything
from proselint.checks import __register__
from proselint.registry.checks import Check, types

BUILT_IN = (
    "hedging", "malapropisms", "misc.apologizing", "needless_variants", "nonwords", "oxymorons",
    "redundancy", "spelling", "uncomparables",
)  # fmt: skip
"""Families of proselint that say something about technical English; the others are about typography, names and novels."""

WORDS = Path(__file__).with_name("words.toml")
SEPARATOR = " ¶\n"


def checks(words: list[dict[str, str]]) -> list[Check]:
    """The word list and the families in use, as checks of proselint."""
    own = [
        Check(
            check_type=types.PreferredForms(items={word["pattern"]: word["use"]}),
            path=f"words.{number}",
            message="write '{}' instead of '{}'",
        )
        for number, word in enumerate(words)
    ]
    return own + [check for check in __register__ if any(check.matches_partial(name) for name in BUILT_IN)]


def found(prose: list[Prose], words: list[dict[str, str]]) -> Iterator[tuple[str, str, int, str]]:
    """Path of the check, file, line and message of everything found. All prose is one text, so that each check runs once."""
    text = SEPARATOR + SEPARATOR.join(piece.text for piece in prose) + SEPARATOR
    starts = list(accumulate((len(piece.text) + len(SEPARATOR) for piece in prose), initial=len(SEPARATOR)))
    for check in checks(words):
        for result in check.check_with_flags(text):
            at = result.span[0] + 1
            piece = bisect_right(starts, at) - 1
            line = prose[piece].line + text.count("\n", starts[piece], at)
            yield check.path, prose[piece].file, line, result.message


def main() -> int:
    words = tomllib.loads(WORDS.read_text(encoding="utf-8"))["word"]
    problems: list[str] = []
    places: dict[str, list[str]] = defaultdict(list)
    for path, file, line, message in found(list(everything()), words):
        if path.startswith("words."):
            places[path].append(f"{file}:{line}: {message}")
        else:
            problems.append(f"{file}:{line}: {message} ({path})")
    counted = [len(places[f"words.{number}"]) for number in range(len(words))]
    if "--lower" in sys.argv:
        WORDS.write_text(lowered(WORDS.read_text(encoding="utf-8"), counted), encoding="utf-8")
        return 0
    for number, (word, count) in enumerate(zip(words, counted, strict=True)):
        left = int(word.get("left", 0))
        if count > left:
            problems += places[f"words.{number}"] if left == 0 or "--all" in sys.argv else [
                f"{word['pattern']!r} stands {count} times, {left} are left to rewrite: write {word['use']!r}; --all lists them"
            ]  # fmt: skip
    print(
        "\n".join(problems)
        or f"prose: nothing new; {sum(counted)} private words are left to rewrite, --lower keeps that"
    )
    return bool(problems)


def lowered(text: str, counted: list[int]) -> str:
    """The word list with `left` as it is now."""
    head, *entries = text.split("[[word]]\n")
    for number, entry in enumerate(entries):
        entry = re.sub(r"left = \d+\n", "", entry)
        entries[number] = f"{entry.rstrip()}\nleft = {counted[number]}\n\n" if counted[number] else entry
    return "[[word]]\n".join([head, *entries]).rstrip() + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
