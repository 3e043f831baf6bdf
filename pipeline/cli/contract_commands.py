"""`contract`, `contract delegate`: what a request could see, before it is made; `why`: what became of a row in an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..views.printed import json_document, to_json
from ..views.text_table import plain_text
from .context_commands import why_of_input
from .options import SetFlag, fields_of, named, settings_of
from .output import EXIT, emit, note, write_file


class _Contracts(TyperGroup):
    """`contract REQUEST` is `contract check REQUEST`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["check", *args])


contract = typer.Typer(cls=_Contracts, help="Show what a request could see: `contract [REQUEST]`.")

Subject = Annotated[
    str | None,
    typer.Argument(
        metavar="[REQUEST]", help="A file of request fields (JSON or YAML), or a snapshot (@: your last answer)."
    ),
]


@contract.command()
def check(request: Subject = None, given: SetFlag = None) -> int:
    """Show what a contract admits. Counts rows, names the rule of each gate and likely mistakes, without a retrieval."""
    from ..contracts.explain import explain, lint
    from ..indexing.following import defaults_in

    settings = settings_of("corpus", "runs")
    resolver, fields = resolver_here(settings), _fields(settings, request, given)
    if request is None:
        named = {**fields.given, **dict.fromkeys(fields.without)}
        fields = replace(fields, given={**defaults_in(settings, Path.cwd(), named), **fields.given})
    found = explain(resolver.scope(fields)) | {"findings": lint(resolver, fields)}
    emit(found)
    return EXIT["denied"] if any(one["level"] == "error" for one in found["findings"]) else EXIT["ok"]


@contract.command()
def delegate(
    parent: Annotated[str, typer.Argument(metavar="PARENT", help="A file of request fields, or a snapshot id.")],
    given: SetFlag = None,
    child: Annotated[
        Path | None, typer.Option("--child", metavar="FILE", help="Request fields of the sub-agent.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the preset here; default: print it.")] = None,
) -> int:
    """Create a preset for a sub-agent. It sees no row that its parent does not; pass the preset to `ask` and `run` as --preset."""
    from ..contracts.scope import delegated
    from ..requests.presets import Preset, plain_fields

    settings = settings_of("corpus", "runs")
    asked = _fields(settings, str(child) if child else None, given)
    fields, above, below = delegated(resolver_here(settings), _fields(settings, parent, None), asked)
    preset = plain_fields(fields)
    if out:
        write_file(out, json_document(preset).encode())
    counts = {"parent": len(above.rows), "child": len(below.rows), "outside": 0}
    found = {
        "preset": preset,
        "digest": Preset(fields).digest,
        "rows": counts,
        "denied": below.contract["denied_reason"],
    }
    emit(found, text="" if out else to_json(preset) + "\n")
    note(f"rows: {counts['child']} of the parent's {counts['parent']}, and no others")
    return EXIT["denied"] if found["denied"] else EXIT["ok"]


def why(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="A snapshot, an audit entry of an x-ray, or a model input. Default: @, your last answer.",
            show_default=False,
        ),
    ] = "@",
    evidence: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHAT]",
            help="A label of the block, an evidence id or path[:line]; of an input also a source or words of an event.",
        ),
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="LOG", help="Of an input, the session log, to look up later events.")
    ] = None,
) -> None:
    """Show where a row was lost and what would admit it. Names the rule that decided; callers learn only of rows that they may see."""
    from ...nodes.errors import InputError
    from ..contracts.why import audit_trail, explained, is_audit_entry, why_not
    from ..indexing.following import own_imports

    settings = settings_of("corpus", "runs")
    if evidence is None and name == "@":
        raise InputError.described("what to explain: a label, an evidence id or path[:line]", "nothing", "WHAT")
    if evidence is None and is_audit_entry(name):
        found = audit_trail(settings, name)
        text = explained([found["decision"]]) + plain_text({each: found.get(each) for each in ("log", "stored")})
    else:
        name, evidence = (name, evidence) if evidence is not None else ("@", name)
        kind, name = named(settings, name)
        if kind == "input":
            found, text = why_of_input(settings, name, evidence, log)
        else:
            if evidence.startswith(("./", "/")):
                path = Path(evidence)
                folders = [folder for _, request, _ in own_imports(settings) for folder in request.paths]
                evidence = str(next((path.relative_to(each) for each in folders if path.is_relative_to(each)), path))
            found = why_not(settings, name, evidence)
            text = explained(found)
    emit(found, text=text)


def difference_of_contracts(settings: Any, one: str, other: str) -> tuple[dict[str, Any], str]:
    """How two contracts differ, as values and as text; each is a file of request fields or a snapshot."""
    from ..contracts.scope import difference
    from ..reading.grants import audits

    resolver = resolver_here(settings)
    first, second = (resolver.scope(_fields(settings, subject, None)) for subject in (one, other))
    reached = {bound["project"] for scope in (first, second) for bound in scope.bounds}
    found = difference(first, second, ids=audits(settings, reached))
    return found, plain_text(found)


def resolver_here(settings: Any) -> Any:
    """The resolver of contracts for the principal of the settings, with the current folder as work tree."""
    from ..contracts.scope import resolver_of
    from ..requests.handoff import trees_around

    return resolver_of(settings, trees_around(Path.cwd()))


def _fields(settings: Any, subject: str | None, given: list[str] | None) -> Any:
    """The request fields of a file or snapshot, if any, with those of --set replacing them."""
    from ...nodes.errors import InputError
    from ..contracts.scope import fields_of_snapshot
    from ..reading.across_runs import snapshot_named
    from ..requests.narrowing import Fields
    from ..requests.presets import fields_in, fields_named
    from ..runs.ids import is_snapshot
    from ..storage.places import at_home

    subject = subject and snapshot_named(settings, subject)
    if subject is None:
        found = Fields()
    elif is_snapshot(subject):
        found = fields_of_snapshot(settings, subject)
    elif not (file := at_home(Path(subject), "REQUEST")).exists():
        raise InputError.expected("a file of request fields or a snapshot, such as @", subject, "REQUEST")
    else:
        found = fields_in(file)
    changed = fields_named(fields_of(given), "--set")
    without = (found.without | changed.without) - changed.given.keys()
    kept = {name: value for name, value in found.given.items() if name not in without}
    return Fields({**kept, **changed.given}, without)
