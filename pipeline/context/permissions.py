"""Denials and grants of permissions: their subjects, and whether an event gives permission.

Gives `grants`, `action_of`, `lifts`, and `ABOUT_PERMISSIONS`, the kinds of events that deny or grant.

Note: an unclear answer grants nothing. A confirmation in words must be a yes and nothing else: every clause of it gives
the permission (`yes`, `it is fine`, `I approve`, `please do it`) or tells the model to do what was denied (`push it`,
`you may push`), in known words or words that name the subject of the event. The act is named only by its verb: `fix it`
is not a yes to `git push origin fix`. The same words in another order are a question (`are you sure`, `please confirm`)
or describe what the user does (`I can do it`). A verb that may also mean to drop the matter, or an unknown one (`drop
it`, `ok, forget it`, `watch it`), gives permission only next to a clear yes (`yes, drop it`, `go ahead and drop it`). A
missed yes can be requested again; a mistaken one may not be undone. An expired permission grants nothing. A stated scope
is the action that is permitted, unless it only limits how long or where (`once`, `this session`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from ...nodes.errors import InputError
from ...nodes.turns.asserting import ACTION, WORD
from ..parsing import values
from ..parsing.strict_json import json_text
from ..sources.jsonl import Record
from .endings import truth
from .shell import behind_options, simple_commands, started

__all__ = ["ABOUT_PERMISSIONS", "action_of", "grants", "lifts"]

ABOUT_PERMISSIONS = ("permission.denied", "permission.granted", "user.confirmation")
_DECIDED = (
    "approved", "granted", "allowed", "confirmed", "accepted", "approve", "allow", "decision", "outcome", "status", "answer", "response", "choice",
    "behavior", "result",
)  # fmt: skip
"""Fields with the decision: true or false, or a word."""
_ABOUT = frozenset((
    "id", "eventId", "event_id", "turnId", "turn_id", "sessionId", "session_id", "kind", "type", "createdAt", "created_at", "timestamp", "key", "keyEvent",
    "subject", "constraintId", "memoryId", "requestId", "request_id", "tool", "toolName", "action", "operation", "command", "arguments", "input", "path", "file",
    "filePath", "file_path", "url", "query", "origin", "actor", "role", "zone", "sensitivity", "visibility", "cwd", "workdir", "workingDirectory",
    "working_directory", "root", "workspaceRoot", "workspace_root", "ref", "artifact", "scope", "expiresAt", "expires_at", "expired",
))  # fmt: skip
"""Fields that describe the subject of an event, not the decision."""
_CLASSES = {
    "Y": "yes yep yeah yup y ok okay sure fine alright approved allowed granted accepted confirmed agreed lgtm course absolutely true permitted "
         "\U0001f44d \u2705 \u662f \u597d \u53ef\u4ee5 \u884c \u6ca1\u95ee\u9898",
    "V": "approve allow grant accept agree permit consent \u540c\u610f \u6279\u51c6 \u5141\u8bb8",
    "F": "confirm \u786e\u8ba4",
    "C": "correct",
    "G": "go ahead proceed continue",
    "D": "do",
    "R": "run \u505a \u53bb \u7ee7\u7eed \u6267\u884c",
    "O": "it this that them s the a all of to for in on with so again permission approval session \u7684 \u5427 \u554a",
    "L": "\u4e86",
    "A": "looks sounds good great perfect right",
    "P": "please now always thanks thank very much \u8bf7 \u8c22\u8c22",
    "I": "i we \u6211",
    "U": "you \u4f60",
    "H": "have my",
    "B": "is are",
    "M": "may can",
}  # fmt: skip
"""Words by their role in a sentence: Y means yes, and so do V, F and C unless they are requests; G, D and R tell the
model to act (R is not a yes by itself), A praises, O and P add nothing, I, U, B, M and H are pronouns, forms of `be`,
`may`, and `have my`. L ends a verb: after a Y, `\u884c\u4e86` may mean `enough`. N are words that name the subject of
the event, and verbs of its action; T are the other words of the action.
"""
_CLASS = {word: letter for letter, words in _CLASSES.items() for word in words.split()}
_GIVES = re.compile(
    r"""
    (?:[YPOA]|(?<=O)B)*(?:(?<!P)C)?               # yes / it is fine / yes to all, please / that is correct
    | [YPA]*PU[OP]*                               # thank you / yes, thank you very much
    | [YPA]*(?:O*U+M|U)?P?[GDRN][GDRNOPYT]*       # do it / you may go ahead / please push it
    | Y*V[LOPNT]*                                 # approve it
    | [YO]*I(?:[VF][LOPNT]*|D)                    # I approve / I do
    | Y*UHH[OVG]+[OPNT]*                          # you have my approval
    | F
    """,
    re.VERBOSE,
)
"""A clause that gives a permission, by the letters of its words."""
_TELLS = re.compile(r"[YPA]*(?:UMP*N|P+N|N(?=[OPT]*[EP]))[EOPTN]*")
"""A clause that tells the model to act: `you may push`, `please push`, `push it`; E are the words of `_IT`."""
_IT = frozenset(("it", "this", "that", "them"))
_CLEAR = frozenset((
    "yes", "yep", "yup", "approved", "allowed", "granted", "confirmed", "permitted", "approve", "allow", "grant", "permit", "consent", "ahead", "proceed",
    "\u540c\u610f", "\u6279\u51c6", "\u5141\u8bb8", "\u53ef\u4ee5",
))  # fmt: skip
"""Words that only mean yes; others (`ok`, `fine`, `agreed`) also begin sentences that drop the matter."""
_DOES = frozenset((
    "add", "annotate", "append", "apply", "assign", "attach", "bind", "boot", "browse", "build", "bump", "charge", "checkout", "cherry", "click", "clone",
    "commit", "compile", "configure", "connect", "convert", "copy", "crawl", "create", "decode", "decrypt", "deploy", "describe", "dispatch", "download",
    "edit", "email", "enable", "encode", "encrypt", "evaluate", "exec", "execute", "export", "extract", "fetch", "find", "fix", "format", "generate", "get",
    "import", "index", "init", "initialize", "insert", "inspect", "install", "invite", "invoke", "label", "launch", "link", "lint", "list", "load", "login",
    "merge", "message", "migrate", "mount", "navigate", "notify", "open", "optimize", "order", "patch", "pay", "ping", "post", "print", "promote",
    "provision", "publish", "push", "query", "read", "rebase", "rebuild", "recreate", "redeploy", "refactor", "refresh", "refund", "regenerate", "register",
    "reindex", "release", "reload", "rename", "render", "reopen", "replace", "reply", "rerun", "restart", "retry", "run", "scale", "scan", "screenshot",
    "search", "seed", "send", "serve", "set", "share", "ship", "show", "sign", "start", "submit", "subscribe", "sync", "test", "trace", "transcribe",
    "transfer", "translate", "trigger", "type", "unlock", "update", "upgrade", "upload", "upsert", "use", "validate", "verify", "view", "write", "\u63a8",
))  # fmt: skip
"""Verbs that, as a command to the model, only mean to do it: none that also drops, ends, undoes or puts off a matter
(`kill`, `close`, `table`, `pull`).
"""
_NAMES_NOTHING = frozenset((
    "later", "tomorrow", "tonight", "soon", "first", "once", "after", "when", "before", "maybe", "perhaps", "instead", "else", "skip", "leave",
    "nothing", "without", "almost", "partly", "and",
))  # fmt: skip
"""Words that defer or restrict a yes, even if they occur in the action."""
_NESTED = frozenset(("gh", "glab", "aws", "gcloud", "az"))
_WITH_VERBS = _NESTED | frozenset((
    "git", "hg", "svn", "jj", "npm", "pnpm", "yarn", "bun", "cargo", "go", "docker", "podman", "kubectl", "helm", "terraform", "tofu", "pulumi",
    "make", "just", "poetry", "uv", "pip", "pip3", "pipenv", "conda", "brew", "apt", "apt-get", "systemctl", "vercel", "netlify", "fly",
    "flyctl", "wrangler", "heroku", "firebase", "serverless", "sls", "alembic", "twine", "dotnet", "mvn", "gradle", "gradlew", "rake", "bundle",
    "gem", "composer", "mix", "task", "nx", "turbo",
))  # fmt: skip
"""Programs whose first argument names the act, or, for `_NESTED`, the second one."""
_RUN = frozenset(("run", "run-script", "compose"))
"""First arguments after which the next one names the act."""
_VALUED = (
    "-C", "-c", "-n", "--prefix", "--filter", "-F", "--dir", "--namespace", "--context", "--project", "--profile",
)  # fmt: skip
_NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_OF_ANY_ACTION = frozenset((
    "all", "always", "any", "anything", "everything", "action", "call", "command", "request", "tool", "once", "one", "time", "only", "just", "now", "turn",
    "round", "task", "session", "conversation", "user", "project", "workspace", "repository", "repo", "global", "local", "this", "the", "for", "in", "of",
))  # fmt: skip
"""Words of a scope that names no action."""
_IN_FULL = 80
"""Longest action that is named by its text; a longer one is named by its digest."""
_WORDS_OF_ACTION = 32
_CLAUSE = re.compile(r"[.,;:!\n\u3002\uff0c\uff01\uff1b]+|\s[-\u2013\u2014]+\s|\band\b")
_WORD = re.compile(
    "|".join(sorted((word for word in _CLASS if ord(word[0]) > 0x2000), key=len, reverse=True))
    + r"|[a-z0-9]+|[^\W_]|[?\uff1f\U0001f300-\U0001faff\u2600-\u27bf]"
)
"""Words (for Chinese the known ones, else single characters) and meaningful signs."""
_NO = re.compile(
    r"\b(?:no|not|nope|nah|never|none|dont|den(?:y|ied)|reject\w*|refus\w*|declin\w*|disallow\w*|forbid\w*|stop|cancel\w*|wait|hold|but|except|unless|"
    r"only|if|until|false|revoke\w*)\b|n't\b|^[^\S\n]*>|[\"\u201c\u201d\u300c\u300d\u00ab\u00bb]|\?|[\uff1f\u4e0d\u522b\u52ff\u62d2\u4f46\u672a]|\u6ca1(?!\u95ee\u9898)|\U0001f44e|\u274c",
    re.MULTILINE,
)
"""Makes an answer a no, or unclear, regardless of its other words; quoted words are not the user's."""
_GIVEN = re.compile(r"\b(?:permission|approval) given\b")
"""`given` alone also begins a condition."""
_QUOTED = re.compile(r"(?<!\w)'|'(?!\w)")
"""An apostrophe that opens or closes a quotation."""
_APOSTROPHES = str.maketrans("\u2018\u2019", "''", "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
"""One form of apostrophe, and signs without color modifiers."""
_ASIDE = re.compile("[RVF]")
"""Letters after which the words of a clause name the object that is run or approved, not a command."""


def action_of(kind: str, payload: Record, command: str | None) -> str | None:
    """The action of a permission, besides its subject: tool, action and command, as far as the event names them. A
    grant that names none is about its scope.
    """
    payload = payload if kind == "permission.denied" else _scoped(payload)
    return _together(payload.text("tool", "toolName"), payload.text("action", "operation"), command)


def _together(*named: str | None) -> str | None:
    words = list(dict.fromkeys(word for word in named if word))
    rest = [word for word in words[:-1] if not words[-1].startswith(word)]
    return " ".join([*rest, *words[-1:]]) or None


def lifts(
    kind: str, payload: Record, text: str | None, command: str | None, at: datetime | None, *, granted: bool
) -> list[str] | None:
    """For a denial, the names by which its action may be granted: with its tool, without it, and each verb of an action
    of one program. For a grant of an action, the names that it lifts; a yes that names no action but one verb (`OK,
    push it`) grants an action with this verb, if it names the denial. `command` is the result of `action_of`, `at` the
    time of the event.
    """
    if kind != "permission.denied":
        payload = _scoped(payload)
        if _is_void(payload, command, at):
            return None
    tool = payload.text("tool", "toolName")
    given = payload.text("command") if payload.text("command") != tool else None
    bare = _together(payload.text("action", "operation"), given) if tool else None
    names = [] if command is None else [_name(command)]
    if kind == "permission.denied":
        names += [_name(bare)] if bare else [] if tool or command is None else [ACTION + _name(command)]
        lines = _lines(payload)
        verbs = sorted(_verbs(payload)) if all(len(simple_commands(line)) == 1 for line in lines) else []
        return [*dict.fromkeys(names), *(f"{WORD}{word}" for word in verbs[:_WORDS_OF_ACTION])] or None
    subject = payload.identifier("subject", "constraintId", "memoryId", "requestId") or ""
    names += [ACTION + _name(bare)] if bare else []
    if not granted:
        names = [f"{WORD}{word}" for word in _only_word(kind, payload, text, subject) if subject and command is None]
    return [f"{subject}{name}" for name in names] or None


def _lines(payload: Record) -> list[str]:
    """The actions and command lines that need the permission, as far as the event names them."""
    given = payload.value("arguments", "input")
    inner = given.get("command", given.get("cmd")) if isinstance(given, Mapping) else None
    named = (payload.text("action", "operation"), payload.text("command"), inner)
    return [each for each in named if isinstance(each, str)]


def _verbs(payload: Record) -> set[str]:
    """The words by which a user may tell the model to do it: from the names of the tool, the program, and the act."""
    names = [(payload.text("tool", "toolName") or "").split("__")[-1]]
    for simple in (each for line in _lines(payload) for each in simple_commands(line)):
        words = started(simple.words)
        program = PurePosixPath(words[0]).name if words else ""
        names.append(program)
        if program.lower() in _WITH_VERBS:
            rest = [each for each in behind_options(list(words[1:]), _VALUED) if each.islower()]
            names += rest[: 2 if program.lower() in _NESTED or (rest[:1] and rest[0] in _RUN) else 1]
    return {part.lower() for name in names for part in _NAME_PART.findall(name)} - _NAMES_NOTHING


def _name(action: str) -> str:
    return ACTION + (action if len(action) <= _IN_FULL else hashlib.sha256(action.encode()).hexdigest())


def grants(kind: str, payload: Record, text: str | None, about: str | None, at: datetime | None) -> bool:
    """Whether an event gives a permission. A grant does unless it contains a no; a confirmation if it is a yes, or
    empty. `about` is the action that it names, `at` the time of the event.
    """
    if kind not in ("permission.granted", "user.confirmation"):
        return False
    payload = _scoped(payload)
    if _is_void(payload, about, at):
        return False
    decided = [_decided(value) for name in _DECIDED if (value := payload.value(name)) is not None]
    if not all(decided):
        return False
    if text and text.strip():
        if decided or kind == "permission.granted":
            return not _says_no(text)
        verbs = {*_WORD.findall(f"{payload.identifier('subject', 'requestId')}".lower()), *_verbs(payload)}
        return _says_yes(text, verbs, about or "")
    beside = {name: value for name, value in payload.fields.items() if value is not None and name not in _ABOUT}
    if decided:
        return True
    return not beside if kind == "user.confirmation" else not any(_refuses(*each) for each in beside.items())


def _scope_of(payload: Record) -> str | None:
    """The action to which the scope of a permission limits it; None if it has no scope, or one of any action."""
    given = payload.value("scope")
    scope = given[0] if isinstance(given, list) and len(given) == 1 else given
    scope = scope if scope is None or isinstance(scope, str) else json_text(scope, payload.place("scope"))
    scope = (scope or "").strip().rstrip("*").rstrip(" :")
    named = scope == payload.identifier("subject", "constraintId", "memoryId", "requestId")
    return None if named or _OF_ANY_ACTION.issuperset(_WORD.findall(scope.lower())) else scope


def _scoped(payload: Record) -> Record:
    """A grant; if it names no action, with its scope as the action."""
    if _lines(payload) or payload.value("arguments", "input") is not None or (scope := _scope_of(payload)) is None:
        return payload
    return Record(payload.at, {**payload.fields, "action": scope}, used=payload.used)


def _is_void(payload: Record, command: str | None, at: datetime | None) -> bool:
    """Whether a permission has expired, or its scope is another action than the one that it names."""
    until, scope = payload.value("expiresAt", "expires_at"), _scope_of(payload)
    own = (command, payload.text("tool", "toolName"), *_lines(payload))
    if scope is not None and not any(f"{each} ".startswith(f"{scope} ") for each in own if each):
        return True
    if truth(payload.value("expired"), unknown=True):
        return True
    try:
        return (
            at is not None
            and until is not None
            and values.instant(until, "expiresAt", dates=True, milliseconds=True) <= at
        )
    except InputError:
        return True


def _only_word(kind: str, payload: Record, text: str | None, subject: str) -> set[str]:
    """The word that a denied action must contain for a confirmation to grant it."""
    if kind != "user.confirmation" or not text or any(payload.value(name) is not None for name in _DECIDED):
        return set()
    own = set(_WORD.findall(subject.lower()))
    others = set(_WORD.findall(text.lower())).difference(_CLASS, own, ("and",))
    return others if len(others) == 1 and _says_yes(text, own | others) else set()


def _decided(value: Any) -> bool:
    return value is True or (isinstance(value, str) and _says_yes(value.lower().replace("once", " "), set()))


def _refuses(name: str, value: Any) -> bool:
    """Whether an unknown field is a refusal: `denied: true`, `permitted: false`, `verdict: rejected`."""
    if isinstance(value, bool):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()
        return _says_no(words) if value else bool({_CLASS.get(word) for word in words.split()} & {"Y", "V", "F", "C"})
    return _says_no(value if isinstance(value, str) else json.dumps(value))


def _says_yes(text: str, verbs: set[str], action: str = "") -> bool:
    """Whether a text is a yes and nothing else; `verbs` name its subject, or tell the model to do it. Of an action of
    several programs it must name none or each. A word in backticks must be one of these, else it is a quotation.
    """
    text = _GIVEN.sub("approved", text.lower().translate(_APOSTROPHES))
    things, known = set(_WORD.findall(action.lower())) - _NAMES_NOTHING, set[str]()
    quoted = _WORD.findall(" ".join(text.split("`")[1::2]))
    if _QUOTED.search(text) or not things.union(verbs).issuperset(quoted):
        return False
    letters, tells, doubtful = "", False, False
    for clause in _CLAUSE.split(text):
        words = _WORD.findall(clause)
        known.update(words)
        read = "".join(_CLASS.get(word, "N" if word in verbs else "T" if word in things else "?") for word in words)
        pointed = "".join("E" if word in _IT else letter for word, letter in zip(words, read, strict=True))
        tells |= bool(_TELLS.fullmatch(pointed))
        if not _GIVES.fullmatch(read):
            return False
        letters += read
        doubtful |= _is_doubtful(words, read)
    programs = [set(_WORD.findall(" ".join(each.words).lower())) for each in simple_commands(action)]
    own = [each.difference(*(other for other in programs if other != each)) & known for each in programs]
    part = len(programs) > 1 and bool(set(letters) & set("NT")) and not all(own)
    agreed = known & _CLEAR if doubtful else tells or set(letters) & set("YVFCGDH")
    return bool(agreed) and not part and not _says_no(text)


def _is_doubtful(words: list[str], read: str) -> bool:
    """Whether the first command word of a clause may mean to drop the matter; `read` are the letters of the words."""
    lettered = zip(words, _ASIDE.split(read)[0], strict=False)
    named = [word for word, letter in lettered if letter in "NT" and word.isalpha()]
    return bool(named) and next((word for word in named if word not in _WITH_VERBS), named[0]) not in _DOES


def _says_no(text: str) -> bool:
    return bool(_NO.search(text.lower().translate(_APOSTROPHES)))
