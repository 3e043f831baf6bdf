"""The kind of file at a path: its splitter, evidence kind and origin class.

Gives: `file_kind(path)`, a function of the path alone, so that a blob is chunked once per kind of path and a history
does not depend on which version came first; `made_elsewhere`, which judges a path.
Note: contents never change the kind; a file called `notes.txt` stays a document even where it quotes a stack trace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .grammars import SPLITTERS


@dataclass(frozen=True, slots=True)
class FileKind:
    """How files of one kind are read. `splitter` names the chunker; `text_by_name` is False for images and similar.

    `document_type` marks tests, vendored code, examples, benchmarks, configuration and data; null for program code and
    all other files.
    """

    splitter: str
    language: str | None
    content_type: str
    evidence_kind: str
    origin_class: str
    generated_by_name: bool = False
    text_by_name: bool = True
    document_type: str | None = None

    @property
    def standing(self) -> str:
        """Logs quote the output of programs, so their text is untrusted; every other file is evidence."""
        return "untrusted" if self.evidence_kind == "test-log" else "evidence"


CLASSES = ("workspace", "project-doc")
"""The classes of origin that files can have."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_LANGUAGES = {
    "python": "py pyi pyw pyx",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "kotlin": "kt kts",
    "c": "c h",
    "cpp": "cc cpp cxx hh hpp hxx",
    "csharp": "cs",
    "ruby": "rb rake",
    "php": "php",
    "swift": "swift",
    "shell": "sh bash zsh bats",
    "powershell": "ps1",
    "sql": "sql",
    "html": "jinja j2",
    "css": "css scss sass less",
    "yaml": "yaml yml",
    "toml": "toml",
    "json": "json jsonl json5",
    "ini": "ini cfg conf properties editorconfig",
    "xml": "xml xsd xsl",
    "perl": "pl pm",
    "clojure": "clj cljs cljc",
    "coffeescript": "coffee",
    "crystal": "cr",
    "cuda": "cu cuh",
    "elixir": "ex exs eex heex",
    "erlang": "erl hrl",
    "fortran": "f f90 f95 f03 f08",
    "fsharp": "fs fsi fsx",
    "glsl": "glsl vert frag",
    "graphql": "graphql gql",
    "groovy": "groovy gradle",
    "haskell": "hs lhs hsc",
    "hcl": "tf hcl",
    "julia": "jl",
    "lisp": "lisp el cl",
    "make": "mk mak",
    "objective-c": "m mm",
    "ocaml": "ml mli",
    "pascal": "pas",
    "protobuf": "proto",
    "purescript": "purs",
    "racket": "rkt",
    "scheme": "scm ss",
    "solidity": "sol",
    "verilog": "v sv svh",
    "vhdl": "vhd vhdl",
} | {name: name for name in _words("astro cmake dart elm fish gleam lua nim nix r scala svelte vim vue zig")}
"""Extensions by language, as GitHub Linguist lists them. Code of an extension that is not here counts as data."""
_BY_EXTENSION = {extension: language for language, names in _LANGUAGES.items() for extension in names.split()}
_SPLITTERS = {"h": "cpp"}
"""Extensions cut by the grammar of another language: `.h` is C or C++, and the C++ grammar parses both."""
_CODE_NAMES = {"makefile": "make", "dockerfile": "docker", "rakefile": "ruby", "gemfile": "ruby", "justfile": "make"}
_MARKDOWN = frozenset(["md", "markdown", "mdx", "mkd"])
_PROSE = frozenset(["txt", "text", "adoc", "asciidoc", "org", "tex"])
_LOGS = frozenset(["log", "out", "err", "trace"])
_FORMATS = {
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    "ipynb": "notebook",
    "pdf": "pages",
    "docx": "document",
}
"""Splitters of files that are read by their parts, see `parts`, by extension."""
_NOT_TEXT = _words(
    """png jpg jpeg gif bmp ico webp tif tiff svg psd ai eps woff woff2 ttf otf eot mp3 mp4 ogg wav flac avi mov webm
    zip gz tgz bz2 xz zst 7z rar tar jar war whl egg so dylib dll exe o a class pyc pyo wasm bin dat db sqlite sqlite3
    parquet arrow feather npy npz pkl pickle h5 hdf5 onnx pt pth safetensors mo"""
)
_RULE_NAMES = frozenset(["agents", "claude", "gemini", "contributing", ".cursorrules", ".windsurfrules", ".clinerules"])
_DOC_NAMES = _words(
    """readme changes changelog history news license licence copying notice authors contributors maintainers security
    support code_of_conduct install todo"""
)
_LOCK_NAMES = _words(
    """package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml poetry.lock pdm.lock uv.lock pipfile.lock cargo.lock
    gemfile.lock composer.lock go.sum bun.lock flake.lock"""
)
_LOG_WORDS = re.compile(r"(?:^|[^a-z])(?:logs?|traces?|traceback|output|pytest|jest|vitest)(?:[^a-z]|$)")
_LOG_FOLDERS = frozenset(["log", "logs"])
_TEST_FOLDER = re.compile(
    r"^(?:(?:.*[-_.])?tests?(?:[-_.].*)?|testing|__tests__|specs?|e2e|testdata|testcases|_*fixtures_*|__mocks__)$"
)
_FOLDERS = {
    "vendored": re.compile(r"^(?:_?vendor(?:ed)?|third[-_]?party|node_modules|bower_components|externs?|externals)$"),
    "example": re.compile(r"^(?:docs?|docs?[-_]src|documentation|examples?|samples?|demos?|tutorials?)$"),
    "benchmark": re.compile(r"^(?:(?:.*[-_])?bench(?:mark)?s?)$"),
}
"""Code by the folder it is in, first match wins; code of documentation counts as an example."""
_TEST_NAME = re.compile(
    r"^(?:test_.*|.*_test\.[a-z]+|.*[._](?:test|spec)\.[cm]?[jt]sx?|.*(?:Test|Tests|Spec)\.(?:java|kt|scala|cs)|conftest\.py)$"
)
_CONFIG_LANGUAGES = frozenset(["yaml", "toml", "json", "ini", "xml"])
_GENERATED_NAME = re.compile(r"\.min\.(?:js|css|mjs)$|\.bundle\.js$|_pb2(?:_grpc)?\.pyi?$|\.pb\.go$|\.(?:js|css)\.map$")


_BUILT = re.compile(r"(?:^|/)(?:dist|build|_*generated_*|site-packages|\.?venv|\.next|\.nuxt)/|\.(?:g\.dart|lock)$")


def made_elsewhere(path: str) -> bool:
    """Whether the file at `path` is not edited by hand: generated, by its name or folder, or vendored."""
    vendored = any(map(_FOLDERS["vendored"].match, path.lower().split("/")[:-1]))
    return vendored or file_kind(path).generated_by_name or _BUILT.search(path.lower()) is not None


@lru_cache(maxsize=65_536)
def file_kind(path: str) -> FileKind:
    """The kind of the file at `path` (`/` separated, inside its source)."""
    *folders, name = path.lower().split("/")
    stem, dot, extension = name.rpartition(".")
    if not dot or not stem:
        stem, extension = name, ""
    text_by_name = extension not in _NOT_TEXT
    generated = name in _LOCK_NAMES or _GENERATED_NAME.search(name) is not None

    def document(splitter: str, language: str | None, kind: str = "doc") -> FileKind:
        if stem in _RULE_NAMES or path.lower().endswith(".github/copilot-instructions.md"):
            kind = "rule"
        return FileKind(splitter, language, "paragraph", kind, "project-doc", generated, text_by_name)

    if ".cursor" in folders and "rules" in folders:
        return document("markdown", "markdown", "rule")
    if extension in _MARKDOWN:
        return document("markdown", "markdown")
    if extension in ("rst", "rest"):
        return document("rst", "rst")
    if extension in _FORMATS:
        return document(_FORMATS[extension], None)
    table_of_log = extension == "csv" and not _LOG_FOLDERS.isdisjoint(folders)
    if extension in _LOGS or table_of_log or (extension in ("csv", "txt") and _LOG_WORDS.search(stem)):
        return FileKind("log", None, "excerpt", "test-log", "workspace", generated, text_by_name)
    language = _BY_EXTENSION.get(extension) or _CODE_NAMES.get(stem)
    if language is None and (extension in _PROSE or _is_prose_name(stem, extension) or "docs" in folders):
        if stem.startswith("requirements") and extension == "txt":
            return FileKind("lines", "ini", "code", "code", "workspace", generated, text_by_name, "config")
        return document("lines", None)
    of_grammar = _SPLITTERS.get(extension, language)
    splitter = of_grammar if of_grammar in SPLITTERS else "lines"
    language = "typescript" if language == "tsx" else language
    of_code = _document_type(tuple(folders), path.rpartition("/")[2], language)
    return FileKind(splitter, language, "code", "code", "workspace", generated, text_by_name, of_code)


def _document_type(folders: tuple[str, ...], name: str, language: str | None) -> str | None:
    if _TEST_NAME.match(name) or (lies := _folder_type(folders)) == "test":
        return "test"
    if language in _CONFIG_LANGUAGES:
        return "config"
    return lies or (None if language else "data")


@lru_cache(maxsize=65_536)
def _folder_type(folders: tuple[str, ...]) -> str | None:
    if any(map(_TEST_FOLDER.match, folders)):
        return "test"
    return next((name for name, rule in _FOLDERS.items() if any(map(rule.match, folders))), None)


def _is_prose_name(stem: str, extension: str) -> bool:
    return not extension and (stem.split("-", 1)[0] in _DOC_NAMES or stem in _RULE_NAMES)
