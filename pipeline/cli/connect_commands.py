"""`connect` a coding agent, and `prompt-hook`, which adds a block before a question."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import LanesFlag, given, settings_of
from .output import EXIT, emit, note

__all__ = ["register"]

TOKENS = 1_200
"""Tokens of the block before a prompt."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(connect)
    app.command("prompt-hook")(prompt_hook)


def connect(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="claude-code, codex, cursor or vscode.")],
    write: Annotated[bool, typer.Option("--write", help="Write the file; other entries are kept.")] = False,
    hook: Annotated[
        bool,
        typer.Option("--hook", help="For claude-code: configure a prompt hook instead of a server."),
    ] = False,
    lanes: LanesFlag = None,
) -> int:
    """Configure a coding agent to start the MCP server. Prints the configuration; --write writes it."""
    from ...nodes.errors import InputError
    from ..servers import clients
    from ..storage.durable import make_folders, write_atomic

    if client not in clients.CLIENTS:
        raise InputError.one_of(clients.CLIENTS, client, "CLIENT")
    if hook and client != "claude-code":
        raise InputError.one_of(("claude-code",), client, "CLIENT", hint="other clients have no hook before a prompt")
    settings = settings_of("corpus", "runs", lanes=lanes)
    command, *before = _command()
    args = [*before, "prompt-hook" if hook else "mcp", *_flags(settings)]
    environ = _environment(settings)
    declared = clients.CLIENTS[client]
    path = (Path.home() if declared.home else Path.cwd()) / (clients.HOOKS if hook else declared.file)
    existing = _existing_text(path)
    if hook:
        import shlex

        env = " ".join(f"{name}={shlex.quote(value)}" for name, value in environ.items())
        text = clients.prompt_hook(f"{env} {shlex.join([command, *args])}", existing, path)
    else:
        server = clients.Server(command, args, environ)
        text = clients.changed(client, server, existing, path)
    if write and text != existing:
        linked = path.resolve()  # a symbolic link to a configuration folder stays a link
        make_folders(linked.parent)
        write_atomic(linked, text.encode(), private=existing is not None or declared.home)
    missing = _missing(settings)
    if given("json"):
        emit({"path": str(path), "written": write, "text": text, "warnings": missing})
    else:
        emit(None, text=text)
        note(f"{'written' if write else 'not written; pass --write to write it'}: {path}")
    for warning in missing:
        note(f"warning: {warning}")
    return EXIT["ok"]


def _existing_text(path: Path) -> str | None:
    """The text of a client's file; None if there is none.

    Raises:
        InputError: it is not UTF-8 text.
    """
    from ...nodes.errors import InputError

    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InputError.described("text in UTF-8", "other bytes", str(path)) from error


def _missing(settings: Any) -> list[str]:
    """Problems that the client would run into when it starts the server."""
    from ...nodes.errors import ScopedRetrievalError
    from ..servers.retriever_pool import expect_healthy

    try:
        expect_healthy(settings)
    except ScopedRetrievalError:
        return [f"no readable corpus at {settings['corpus']}: the server does not start before `index` has made one"]
    return []


def prompt_hook(
    lanes: LanesFlag = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Tokens of the block.")] = TOKENS,
) -> int:
    """Print a block for a prompt event on standard input. The event is Claude Code's UserPromptSubmit.

    A failed retrieval never blocks the prompt: the exit code is 0 or 1.
    """
    from ...nodes.errors import ScopedRetrievalError
    from ..asking.opening import open_retriever
    from ..parsing.strict_json import strict_json

    try:
        settings = settings_of("corpus", "runs", lanes=lanes)
        event = strict_json(sys.stdin.read())
        fields = _fields(event, settings, max_tokens)
        with open_retriever(settings) as retriever:
            found = retriever.retrieve(fields)
    except (ScopedRetrievalError, OSError, ValueError) as error:
        unread = "Expected the JSON of a prompt, got other text"
        reason = error.strerror or str(error) if isinstance(error, OSError) else getattr(error, "message", unread)
        note(f"no block for this prompt: {reason}")
        return 1
    if found.block:
        output = {"hookEventName": "UserPromptSubmit", "additionalContext": found.block}
        emit({"hookSpecificOutput": output})
    note(f"snapshot: {found.snapshot_id or 'none'} ({found.status})")
    return EXIT["ok"]


def _fields(event: Any, settings: Any, max_tokens: int) -> dict[str, Any]:
    """The request for an event of Claude Code."""
    if not isinstance(event, dict) or not isinstance(event.get("prompt"), str):
        raise ValueError
    session = event.get("session_id")
    defaults = {name: settings[name] for name in ("project", "purpose") if settings[name] is not None}
    return {
        **defaults,
        "question": event["prompt"],
        "session_id": session if isinstance(session, str) and session else None,
        "intent_source": "runtime",
        "budget": {"max_tokens": max_tokens},
    }


def _command() -> list[str]:
    """The program next to this Python, else the module."""
    beside = Path(sys.executable).with_name("scoped-retrieval")
    return [str(beside)] if beside.is_file() else [sys.executable, "-m", "scoped_retrieval.pipeline.cli"]


def _flags(settings: Any) -> list[str]:
    """Flags that name every place, so that no folder in which the client starts the server can choose one."""
    flags = ["--project", settings["project"]] if settings["project"] else []
    places = {"corpus": settings["corpus"], "runs": settings["runs"], "grants": settings.grants_path}
    for name, place in places.items():
        flags += [f"--{name}", str(_absolute(place))]
    return flags if settings.origin("lanes") == "default" else [*flags, "--lanes", ",".join(settings["lanes"])]


def _environment(settings: Any) -> dict[str, str]:
    """The principal, the profile and the places and keys for which there is no flag."""
    from ..config.settings import ENV_PREFIX, SETTINGS

    named = {"principal": settings.principal, "profile": settings["profile"]}
    named |= {s.name: settings[s.name] for s in SETTINGS.values() if s.kind in ("place", "path")}
    flagged = ("corpus", "runs", "grants")
    state = {
        name: os.environ[name] for name in ("XDG_STATE_HOME",) if name in os.environ
    }  # what this user made is known there
    return state | {
        f"{ENV_PREFIX}{name.upper()}": str(_absolute(value))
        for name, value in named.items()
        if value is not None and name not in flagged
    }


def _absolute(place: Any) -> Any:
    return place.resolve() if isinstance(place, Path) else place
