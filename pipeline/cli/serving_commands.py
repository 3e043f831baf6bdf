"""`serve` over HTTP or MCP, and `connect` a coding agent."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ..servers.clients import CLIENTS
from ..views.printed import json_document
from .options import PresetFlag, given, settings_of
from .output import deliver, emit, note

PORT = 8765
HOOKED = [name for name, each in CLIENTS.items() if each.hooks]


def serve(
    mcp: Annotated[bool, typer.Option("--mcp", help="Serve MCP instead, statelessly at /mcp.")] = False,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve MCP on standard input and output.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; remote clients need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 = any free port.")] = PORT,
    openapi: Annotated[bool, typer.Option("--openapi", help="Print the OpenAPI document and exit.")] = False,
    preset: PresetFlag = None,
) -> None:
    """Serve retrieval over HTTP or MCP. Bearer tokens in the grants file map to principals; --json shows the address or scope without serving (extra `serve`)."""
    _expect_extra("fastapi", "uvicorn", *(["mcp"] * (mcp or stdio)))
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    if mcp or stdio:
        from ..servers import mcp_server

        if given("json"):
            from ..servers.mcp_tools import scope_of

            emit({"transport": "stdio" if stdio else "http", **scope_of(settings_of("corpus", "runs"))})
        elif stdio:
            mcp_server.serve_stdio(lambda: settings_of("corpus", "runs"), preset=preset)
        else:
            mcp_server.serve_http(settings_of("corpus", "runs"), host, port, preset=preset)
        return
    from ..servers import http_app

    settings = settings_of("corpus", "runs")

    if openapi:
        deliver(json_document(http_app.application(settings, preset=preset).openapi()), None)
    elif given("json"):
        emit({"host": host, "port": port})
    else:
        http_app.serve(settings, host, port, preset=preset)


def _expect_extra(*modules: str) -> None:
    """Refuse to start a server whose packages are not installed.

    Raises:
        EngineError: a module of the extra is missing.
    """
    from importlib.util import find_spec

    from ...nodes.errors import EngineError

    missing: list[Any] = [module for module in modules if find_spec(module) is None]
    if missing:
        hint = "pip install 'scoped-retrieval[serve]'"
        raise EngineError(f"Expected {missing[0]}, got no such package - at the extra serve", hint=hint)


def connect(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help=f"{', '.join(CLIENTS)}.")],
    hook: Annotated[
        bool, typer.Option("--hook", help=f"Also a hook that adds a block to prompts: {', '.join(HOOKED)}.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take out what `connect` added.")] = False,
    show: Annotated[bool, typer.Option("--print", help="Print the file, and write nothing.")] = False,
) -> None:
    """Configure a coding agent to start the MCP server. Its file is at the top of the repository; other entries are kept.

    Options such as --project and --corpus are passed on to the server. Without them, it answers from the folder in which
    the agent starts it, and the file can be committed.
    """
    from ...nodes.errors import InputError
    from ..servers.clients import with_hook
    from ..sources.git_commands import work_tree_root

    if client not in CLIENTS:
        raise InputError.one_of(CLIENTS, client, "CLIENT")
    declared = CLIENTS[client]
    if hook and not declared.hooks:
        raise InputError.one_of(HOOKED, client, "CLIENT", hint="no other client has a hook that calls a tool")
    top = work_tree_root(Path.cwd()) or Path.cwd()
    args = None if remove else ["serve", "--stdio", *_options(top)]
    path = top / declared.file
    made = {path: declared.with_server(args, _existing_text(path), path)}
    if declared.hooks and (hook or remove):
        path = top / declared.hooks
        made[path] = with_hook(_existing_text(path), path, added=not remove)
    files = [
        {"path": str(path), "written": not show and _written(text, path, top), "text": text}
        for path, text in made.items()
    ]
    warnings = [] if remove else _warnings()
    if given("json"):
        emit({"files": files, "warnings": warnings})
    else:
        for each in files:
            done = "nothing to change" if not each["written"] else "written" if each["text"].strip() else "removed"
            emit(None, text=each["text"] if show else f"{each['path']}: {done}\n")
    for warning in warnings:
        note(f"warning: {warning}")


def _written(text: str, path: Path, top: Path) -> bool:
    """Whether the file of a client was changed to this text; without any, it is removed."""
    from ..storage.durable import make_folders, write_atomic

    existing = _existing_text(path)
    if text == (existing or ""):
        return False
    linked = path.resolve()  # a symbolic link to a configuration folder stays a link
    if text.strip():
        make_folders(linked.parent)
        write_atomic(linked, text.encode(), private=existing is not None)
    else:
        linked.unlink()
        with suppress(OSError):  # a folder with something else in it stays
            for folder in path.parents[: len(path.relative_to(top).parents) - 1]:
                folder.rmdir()
    return True


def _options(top: Path) -> list[str]:
    """The options of this command that the server, which starts at `top`, gets as well; relative places are from there."""
    from ..storage.places import is_url

    named = {f"--{name}": given(name) for name in ("project", "corpus", "runs", "grants", "profile")}
    for flag in ("--corpus", "--runs", "--grants"):
        place = named[flag]
        if place is not None and not is_url(place) and not Path(place).expanduser().is_absolute():
            named[flag] = os.path.relpath(place, top)
    pairs = [(flag, str(value)) for flag, value in named.items() if value is not None]
    return [part for pair in (*pairs, *(("-c", each) for each in given("configured") or ())) for part in pair]


def _warnings() -> list[str]:
    """What the agent may lack when it starts the server."""
    from ..config.settings import ENV_PREFIX
    from ..servers.clients import NAME

    found = []
    if shutil.which(NAME) is None:
        found.append(f"no command `{NAME}` in PATH, by which the agent starts it: install it for your user")
    if names := sorted(name for name in os.environ if name.startswith(ENV_PREFIX)):
        found.append(f"{', '.join(names)}: set in this shell; the agent must be started with the same values")
    return found


def _existing_text(path: Path) -> str | None:
    """The text of a client's file; None if there is none.

    Raises:
        InputError: it is not UTF-8 text.
    """
    from ...nodes.errors import InputError

    try:
        return path.read_bytes().decode()  # line endings as they are
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InputError.described("text in UTF-8", "other bytes", str(path)) from error
