"""Git in command lines: what each program of a line does, and whether it succeeded.

Gives: `steps_of` a line, with its output and exit code, and `sets_aside`.

Note: Git's own output decides before the exit code, which may be that of another program. Without output, a program
succeeded if the line exited with 0. In a line that failed, programs before the last `;` succeeded, one that is alone
failed, and the others are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

from .check_programs import check_of
from .shell import MOVES, SimpleCommand, behind_options, simple_commands, started
from .summaries import summary_of

__all__ = ["BACK", "BRINGS", "GitStep", "sets_aside", "steps_of"]

BACK = ("-", "@{-1}")
"""Names of the previous branch."""
BRINGS = ("merge", "rebase", "cherry-pick")
"""Verbs that bring in the work of another branch."""
_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree")
_BEGINS = frozenset(("-b", "-B", "-c", "-C", "--create", "--force-create", "--orphan"))
"""Options of `checkout` and `switch` that create a branch."""
_MAY_CONFLICT = frozenset((*BRINGS, "stash pop", "stash apply", "pull", "revert"))
_ENDS_LIST = frozenset((";", "\n", "&"))
_BRANCHES = ("begun", "on", "already")
_MESSAGES = {
    "begun": r"(?:Switched to (?:a new |and reset )branch|Reset branch) '(?P<new>[^'\n]+)'", "on": r"Switched to branch '(?P<old>[^'\n]+)'",
    "already": r"Already on '(?P<here>[^'\n]+)'", "detached": "HEAD is now at ", "files": r"Updated \d+ paths? from ",
    "saved": "Saved working directory", "nothing": "No local changes to save", "dropped": r"Dropped (?:refs/)?stash@", "kept": "The stash entry is kept",
    "none": "No stash entries found", "merged": "Fast-forward$|Merge made by |Already up to date|Successfully rebased ",
    "refused": r"fatal: |Aborting$|error: (?:Your local changes|The following untracked|pathspec '|could not restore|Entry '|you need to resolve|[Cc]annot |[Tt]he branch '|branch ')",
}  # fmt: skip
"""Messages in which Git reports what it did."""
_MESSAGE = re.compile(f"^(?:{'|'.join(f'(?P<{kind}>{pattern})' for kind, pattern in _MESSAGES.items())})", re.MULTILINE)
_SAYS = {
    "switch": (*_BRANCHES, "detached"), "checkout": (*_BRANCHES, "detached", "files"), "pr checkout": _BRANCHES, "stash push": ("saved", "nothing"),
    "stash pop": ("dropped", "kept", "none"), "stash apply": ("none",), "stash drop": ("dropped", "none"), **dict.fromkeys(("merge", "rebase", "pull"), ("merged",)),
}  # fmt: skip
"""The messages of each verb."""
_DONE = frozenset((*_BRANCHES, "detached", "saved", "dropped", "merged"))


@dataclass(frozen=True)
class _Message:
    kind: str
    branch: str = ""


@dataclass(frozen=True)
class GitStep:
    """A program of a command line; `verb` is `` if it is not Git."""

    simple: SimpleCommand
    verb: str = ""
    """The verb of Git, with the subcommand of `git stash`: `stash pop`."""
    rest: tuple[str, ...] = ()
    """The words after the verb."""
    done: bool | None = None
    """Whether it succeeded; None = unknown."""
    message_kind: str = ""
    """The kind of message in which Git reports it."""
    on: str = ""
    """The branch that Git names."""
    conflict: bool = False
    """Whether it succeeded and left conflicts."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words after the verb that are not options."""
        return tuple(word for word in self.rest if word == "-" or not word.startswith("-"))

    @property
    def begins(self) -> bool:
        """Whether `checkout` or `switch` creates a branch."""
        return self.verb in ("switch", "checkout") and bool(_BEGINS & {*self.rest})

    @property
    def detaches(self) -> bool:
        return bool({"--detach", "-d"} & {*self.rest})

    @property
    def branch(self) -> str:
        """The branch or revision to which `switch` or `checkout` moves, `` for files or nothing."""
        if self.verb not in ("switch", "checkout", "pr checkout") or {"-p", "--patch"} & {*self.rest}:
            return ""
        several = len(self.words) > 1 or ("--" in self.rest and self.rest[-1] != "--")
        alone = self.begins or self.verb == "pr checkout" or not several
        return self.words[0] if self.words and alone else ""

    @property
    def folders(self) -> list[str]:
        """The folders in which it is to run by its options, relative to that of the shell; `` if it names none."""
        words = list(started(self.simple.words))[1:]
        options = words[: len(words) - len(behind_options(words, _OPTIONS))]
        named = [after for word, after in pairwise(options) if word in ("-C", "--git-dir", "--work-tree")]
        named += [word.split("=", 1)[1] for word in options if word.startswith(("--git-dir=", "--work-tree="))]
        return named or [""]

    def may_say(self, message: _Message) -> bool:
        """Whether a message can be from this program: it matches the verb and the branch."""
        if message.kind not in _SAYS.get(self.verb, ()):
            return False
        named = self.branch
        if message.kind in _BRANCHES:
            loose = self.verb == "pr checkout" or named in BACK or not self.simple.exact
            fits = loose or named == message.branch or named.endswith(f"/{message.branch}")
            return bool(named) and fits and not self.detaches
        return not self.begins and (message.kind != "detached" or bool(named))

    @property
    def silent(self) -> bool:
        """Whether the output does not report what it did."""
        aside = any(sign in (">", ">>", "&>") for sign, _ in self.simple.redirects)
        return aside or bool({"-q", "--quiet"} & {*self.rest}) or self.verb not in _SAYS


def steps_of(command: str, output: str, code: int | None) -> list[GitStep]:
    """The programs of a command line in order, with their results as far as output and exit code show them."""
    steps = [GitStep(simple, *_git_call(simple)) for simple in simple_commands(command)]
    messages, found = _messages(output), list[GitStep]()
    alone = sum(bool(step.verb) for step in steps) == 1
    before: bool | None = None
    for number, step in enumerate(steps):
        sign = step.simple.behind
        if (sign == "&&" and before is False) or (sign == "||" and before is True):
            found.append(replace(step, done=False))  # it did not run
            continue
        conflict = step.verb in _MAY_CONFLICT and "CONFLICT (" in output
        message = _taken(step, messages, steps[number + 1 :], alone=alone) if step.verb else None
        if message is None:
            done = _by_code(steps, number, output, code) if step.verb else None
            behind = steps[number + 1 :][:1] if step.simple.ahead == "||" and done else []
            if any(each.may_say(one) and one.kind in _DONE for each in behind for one in messages if not each.silent):
                done = False  # the other one ran
        elif message.kind == "kept":
            done = conflict
        else:
            done = message.kind in _DONE
        kind, branch = (message.kind, message.branch) if message else ("", "")
        conflict &= bool(done) and kind != "dropped"
        found.append(replace(step, done=done, message_kind=kind, on=branch, conflict=conflict))
        before = done
    return found


def _messages(output: str) -> list[_Message]:
    """Git's messages in the order of lines; the lines of one refusal are one message. A new branch that tracks another
    one begins at that one.
    """
    found: list[_Message] = []
    for each in _MESSAGE.finditer(output):
        kind = next(kind for kind in _MESSAGES if each[kind] is not None)
        kind = "on" if kind == "begun" and "set up to track" in output else kind
        if not (each[0] == "Aborting" and found and found[-1].kind == "refused"):
            found.append(_Message(kind, each["new"] or each["old"] or each["here"] or ""))
    return found


def _taken(step: GitStep, messages: list[_Message], later: Sequence[GitStep], *, alone: bool) -> _Message | None:
    """The message of a program, removed from those of the line. A silent program gets a refusal only if it is alone."""
    own = [] if step.silent else [each for each in messages if step.may_say(each)]
    message = next((each for each in own if each.kind != "detached"), None) or next(iter(own), None)
    refused = next((each for each in messages if each.kind == "refused"), None) if alone or not step.silent else None
    rivals = [each for each in later if message and each.may_say(message)]
    if message and rivals:  # `git checkout x || git checkout -b x`
        begun = message.kind == "begun"
        better = step.begins != begun and any(each.begins == begun for each in rivals)
        if better or (refused and messages.index(refused) < messages.index(message)):
            message = None
    if (found := message or refused) is not None:
        messages.remove(found)
    return found


def _by_code(steps: Sequence[GitStep], number: int, output: str, code: int | None) -> bool | None:
    """Whether a program succeeded, as far as the exit code shows."""
    if not code:
        return True
    start = max((n for n, step in enumerate(steps) if step.simple.behind in _ENDS_LIST), default=0)
    if number < start:
        return True
    step, last = steps[number], steps[start:]
    if "CONFLICT (" in output and step.verb in _MAY_CONFLICT:
        return True if sum(each.verb in _MAY_CONFLICT for each in steps) == 1 else None
    programs = [each for each in last if each.simple.words[0] not in MOVES and each.simple.behind not in ("|", "|&")]
    if len(programs) == 1 or "||" in (step.simple.behind, step.simple.ahead):
        return False
    checks = [n for n, each in enumerate(last, start) if check_of(each.simple) is not None]
    return True if checks and number < checks[0] and summary_of(output) is not None else None


def sets_aside(simple: SimpleCommand) -> bool:
    """Whether a program puts the work into a stash."""
    return _git_call(simple)[0] == "stash push"


def _git_call(simple: SimpleCommand) -> tuple[str, tuple[str, ...]]:
    """The verb of a Git command, and the words after it."""
    words = list(started(simple.words))
    program = PurePosixPath(words[0]).name if words else ""
    if program == "gh" and (words[1:3] == ["pr", "checkout"] or words[1:2] == ["co"]):
        return "pr checkout", tuple(words[3 if words[1] == "pr" else 2 :])
    rest = behind_options(words[1:], _OPTIONS) if program == "git" else []
    if rest[:1] != ["stash"]:
        return (rest[0], tuple(rest[1:])) if rest else ("", ())
    if not rest[1:] or rest[1].startswith("-"):
        return "stash push", tuple(rest[1:])
    return f"stash {'push' if rest[1] == 'save' else rest[1]}", tuple(rest[2:])
