"""The claims of an answer that can be compared with evidence: citations, quotes, values, lines and actions.

Reads the text of an answer. Gives `Claims`, each claim with its place in characters and the labels cited with it.

Note: fenced code is a quote unless its language is a diff or a shell. A `diff` quotes its context and removed lines and
proposes the rest; a shell block contains commands to run. Inline code is a name, not a quote. No sentence is read as an
action: only such a block states one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..facts.fact_values import NO_SHORT_MONTH, Value, values_in
from ..vocabulary import EVIDENCE_KINDS

Place = tuple[int, int]

LABEL = re.compile(
    rf"(?<![\w/.#-])(?:(?P<known>(?:{'|'.join(EVIDENCE_KINDS.values)})#\d+)|(?<=\[)(?P<other>[a-z][a-z-]*#\d+)(?=\]))(?![\w#])"
)
_FENCE = re.compile(
    r"(?m)^ {0,3}(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>[^\n`]*)\n(?P<body>(?:.*\n)*?) {0,3}(?P=mark)[`~]*[ \t]*$"
)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)(?P<code>[^`\n]+?)\1(?!`)")
_QUOTED = re.compile(
    r"(?<![\w\"])\"(?P<straight>[^\"\n]{2,}?(?:\n(?!\n)[^\"\n]+?)*)\"(?!\w)|\u201c(?P<curly>[^\u201c\u201d]+)\u201d"
    r"|\u00ab(?P<angle>[^\u00ab\u00bb]+)\u00bb|\u300c(?P<corner>[^\u300c\u300d]+)\u300d|\u201e(?P<low>[^\u201e\u201c\u201d]+)[\u201c\u201d]"
)
_BLOCKQUOTE = re.compile(r"(?m)(?:^ {0,3}>[^\n]*(?:\n|\Z))+")
_ORDINAL = re.compile(r"(?m)^\s*(?:#+\s*)?\d+[.)](?=\s)")
_SENTENCE = re.compile(
    rf"(?:(?<=[.!?]){NO_SHORT_MONTH}|(?<=[.!?]\]))\s+(?=[^a-z\s\[])|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)"
)
_PATH = re.compile(
    r"(?<![\w/:@.-])(?:[\w.@+-]+/)+[\w.@+-]*[\w@+-]|(?<![\w/:@.-])[\w@+-]+\.(?:[cm]?[jt]sx?|py|rs|go|java|kt|rb|php|cs|cpp|cc|[ch]|"
    r"hpp|swift|sql|sh|ya?ml|toml|json|md|rst|txt|cfg|ini|css|html|vue|lock)(?![\w-])"
)
_LINES = re.compile(
    r"(?:(?<![^\s`'\"()])(?P<path>[^\s`'\"()]+)[:#]L?|\b[Ll]ines? )"
    r"(?P<first>\d{1,9})(?:\s?[-\u2013]\s?L?(?P<last>\d{1,9}))?(?!\w|\.\d)"
)
_SHELLS = frozenset({"sh", "bash", "shell", "zsh", "console", "shell-session", "powershell", "bat", "cmd"})
_PATCHES = frozenset({"diff", "patch"})


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the answer: its place, and the labels cited in the same sentence."""

    start: int
    end: int
    text: str
    labels: tuple[str, ...] = ()
    code: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that the answer names: of the file at `path`, or of the items cited in the same sentence."""

    place: Span
    path: str | None
    first: int
    last: int


@dataclass
class Claims:
    """All checkable claims of an answer, each list in order of place."""

    citations: list[Span] = field(default_factory=list)
    quotes: list[Span] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    """Lines of files; their numbers are among `values`, too."""
    actions: list[Span] = field(default_factory=list)
    """Files that its diffs change, and commands of its shell blocks."""
    sentences: list[Span] = field(default_factory=list)


def claims_of(answer: str) -> Claims:
    """The claims of an answer."""
    found = Claims()
    fences = list(_FENCE.finditer(answer))
    prose = _blanked(answer, [match.span() for match in fences])
    found.citations = [Span(*m.span(), m[0]) for m in LABEL.finditer(prose)]
    found.sentences = list(_sentences(prose, found.citations))
    for match in fences:
        _read_fence(match, _before(found, match), found)
    inline = [match.span() for match in _INLINE.finditer(prose)]
    quoted = list(_BLOCKQUOTE.finditer(prose))
    found.quotes += [Span(*m.span(), _unquoted(m[0]), _labels_at(found, m.span())) for m in quoted]
    for m in _QUOTED.finditer(_blanked(prose, [*inline, *(m.span() for m in quoted)])):
        found.quotes.append(Span(*m.span(), m[m.lastgroup or 0], _labels_at(found, m.span())))
    found.quotes.sort(key=lambda span: span.start)
    bare = _blanked(prose, [(s.start, s.end) for s in [*found.citations, *found.quotes]])
    bare = _blanked(bare, [m.span() for m in _ORDINAL.finditer(bare)])
    paths = [m.span() for m in _PATH.finditer(bare)]
    found.values = list(values_in(_blanked(bare, paths)))
    for m in _LINES.finditer(bare):
        place, first = Span(*m.span(), m[0], _labels_at(found, m.span())), int(m["first"])
        found.lines.append(Lines(place, m["path"], first, int(m["last"] or first)))
    return found


def _sentences(prose: str, citations: Iterable[Span]) -> Iterator[Span]:
    """The sentences and list items of prose. A citation after the full stop belongs to the sentence before it."""
    start = 0
    for end in [*(m.end() for m in _SENTENCE.finditer(prose)), len(prose)]:
        if prose[start:end].strip():
            labels = dict.fromkeys(c.text for c in citations if start <= c.start < end)
            yield Span(start, end, prose[start:end], tuple(labels))
        start = end


def _labels_at(found: Claims, place: Place) -> tuple[str, ...]:
    """Labels of the sentences that overlap a place."""
    within = [s.labels for s in found.sentences if s.start < place[1] and place[0] < s.end]
    return tuple(dict.fromkeys(label for labels in within for label in labels))


def _before(found: Claims, fence: re.Match[str]) -> tuple[str, ...]:
    """Labels of the sentence before a fence."""
    before = [s for s in found.sentences if s.end <= fence.start() + 1]
    return before[-1].labels if before else ()


def _read_fence(fence: re.Match[str], labels: tuple[str, ...], found: Claims) -> None:
    language = fence["info"].split()[0].lower() if fence["info"].split() else ""
    start, body = fence.start("body"), fence["body"]
    if language in _SHELLS:
        for line in re.finditer(r"(?m)^\s*(?:\$ |> |# )?(?P<command>\S.*)$", body):
            if not line["command"].startswith("#"):
                found.actions.append(
                    Span(start + line.start("command"), start + line.end(), line["command"].strip(), labels, True)
                )
    elif language in _PATCHES:
        for line in re.finditer(r"(?m)^(?:(?:---|\+\+\+) (?:[ab]/)?(?P<file>\S+).*|[ -](?P<old>.*\S.*))$", body):
            if line["file"] and line["file"] != "/dev/null":
                found.actions.append(Span(start + line.start("file"), start + line.end("file"), line["file"], labels))
            elif line["old"]:
                found.quotes.append(Span(start + line.start("old"), start + line.end("old"), line["old"], labels, True))
    elif body.strip():
        found.quotes.append(Span(start, fence.end("body"), body, labels, True))


def _unquoted(block: str) -> str:
    """A block quote without its marks and without the citation that ends it."""
    text = re.sub(r"(?m)^ {0,3}> ?", "", block)
    return re.sub(r"(?:[\s\[(\u2014\u2013-]*" + LABEL.pattern + r"[\])]*)+\s*\Z", "", text)


def _blanked(text: str, places: Iterable[Place]) -> str:
    """The text with these places replaced by spaces; line breaks and all positions stay the same."""
    characters = list(text)
    for start, end in places:
        characters[start:end] = ["\n" if c == "\n" else " " for c in characters[start:end]]
    return "".join(characters)
