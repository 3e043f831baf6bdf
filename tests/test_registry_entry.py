"""`server.json`, the entry of the MCP registry: what its schema asks for, and that it is of this version.

`Entry` states what the registry's schema of 2025-12-11 requires of the fields used here, in our words. Where
MCP_SERVER_SCHEMA names a copy of the schema itself (https://static.modelcontextprotocol.io/schemas/), that is tested too.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from jsonschema import Draft7Validator
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

ROOT = Path(__file__).parents[1]
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
OFFICIAL = os.environ.get("MCP_SERVER_SCHEMA")
Short = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Version = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+([-+.][\w.]+)?$", max_length=255)]


class Part(BaseModel):
    """A part of an entry; a field that is not listed is not read."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Argument(Part):
    type: Literal["positional", "named"]
    name: str | None = None
    value: str | None = None
    value_hint: str | None = None
    description: str | None = None
    format: Literal["string", "number", "boolean", "filepath"] = "string"
    is_required: bool = False

    @model_validator(mode="after")
    def _says_what_it_is(self) -> Argument:
        if self.type == "named" and not self.name:
            raise ValueError("a named argument without a name")
        if self.type == "positional" and self.value is None and self.value_hint is None:
            raise ValueError("a positional argument without a value or a hint of one")
        return self


class Variable(Part):
    name: str
    description: str | None = None
    is_required: bool = False


class Stdio(Part):
    type: Literal["stdio"]


class Package(Part):
    registry_type: Literal["pypi"]
    identifier: str
    version: Version
    transport: Stdio
    runtime_hint: str
    runtime_arguments: list[Argument]
    package_arguments: list[Argument]
    environment_variables: list[Variable]


class Entry(Part):
    schema_: Literal[SCHEMA] = Field(alias="$schema")  # type: ignore[valid-type]
    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", min_length=3, max_length=200)]
    title: Short
    description: Short
    version: Version
    packages: list[Package]


def entry() -> dict[str, Any]:
    return json.loads((ROOT / "server.json").read_text(encoding="utf-8"))


def test_the_entry_has_what_the_schema_asks_for():
    Entry.model_validate(entry())


@pytest.mark.skipif(OFFICIAL is None, reason="needs the registry's schema; its path is MCP_SERVER_SCHEMA")
def test_the_entry_is_as_the_registry_s_own_schema_says():
    schema = json.loads(Path(str(OFFICIAL)).read_text(encoding="utf-8"))
    assert schema["$id"] == SCHEMA
    assert [error.message for error in Draft7Validator(schema).iter_errors(entry())] == []


def test_the_entry_is_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    (package,) = entry()["packages"]
    assert (entry()["version"], package["version"], package["identifier"]) == (version, version, "scoped-retrieval")
    assert package["runtimeArguments"][0]["value"] == f"scoped-retrieval[serve]=={version}"
    assert f"mcp-name: {entry()['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_arguments_are_flags_of_the_command(capsys: pytest.CaptureFixture[str]):
    from scoped_retrieval.pipeline.cli import main

    assert main(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    (package,) = entry()["packages"]
    first, *flags = package["packageArguments"]
    assert first["value"] == "serve" and all(flag["name"] in shown for flag in flags)
