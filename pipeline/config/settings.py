"""Settings: defaults < user file < project file < profile < environment < flags, each value with its origin.

Reads: `settings.toml` in the user's configuration folder, the nearest `scoped-retrieval.toml` at or above the working
folder, the table `[profiles.NAME]` of both if a profile is chosen, environment variables `SCOPED_RETRIEVAL_<NAME>`,
flags. Gives: one frozen `Settings`.

Note: trust follows the file. A project file comes with the folder, so it speaks only for a corpus and runs in that folder,
sets only what `Setting.project_file` allows, and names only paths in the folder. A relative path is relative to the file
that contains it, elsewhere to the working folder.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...nodes.errors import InputError
from ..parsing import values as checks
from ..storage.places import ObjectPlace, Place, at_home, is_url, place_of, user_folder
from .declared_settings import SETTINGS, Setting

if TYPE_CHECKING:
    from ..encoders.choice import EncoderChoice

ENV_PREFIX = "SCOPED_RETRIEVAL_"
PROFILES = "profiles"
FOLDER = ".scoped-retrieval"
"""The folder of the default corpus and runs."""
PROJECT_FILE = "scoped-retrieval.toml"
_OPENAI = "openai"
"""The kind of an encoder on a server."""


@dataclass(frozen=True, slots=True)
class SettingValue:
    """A resolved value and where it came from."""

    value: Any
    origin: str


_File = Mapping[str | None, Mapping[str, SettingValue]]
"""The values of a settings file by profile; None: outside of any."""


@dataclass(frozen=True)
class Settings:
    """The resolved settings. `settings["corpus"]` is the value, `settings.origin("corpus")` its origin."""

    values: Mapping[str, SettingValue]
    ignored: Path | None = None
    """The project file, if the corpus or the runs are named and elsewhere."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def origin(self, name: str) -> str:
        """`default`, a file, an environment variable or a flag."""
        return self.values[name].origin

    def having(self, origin: str, **values: Any) -> Settings:
        """The same settings but for these values, which have this origin."""
        return replace(
            self, values={**self.values, **{name: SettingValue(one, origin) for name, one in values.items()}}
        )

    @property
    def grants_path(self) -> Place:
        """The grants file: the one set, else `grants.yaml` in the corpus folder."""
        return self["grants"] or self["corpus"] / "grants.yaml"

    @property
    def encoder_choice(self) -> EncoderChoice:
        """The configured encoder, and how models and servers are reached."""
        from ..encoders.choice import EncoderChoice

        names = ("encoder", "encoder_query_prompt", "encoder_passage_prompt", "encoder_key_variable")
        return EncoderChoice(*(self[name] for name in names))

    def loaded_cross_encoder(self) -> Any:
        """The configured cross-encoder; None if none is set.

        Raises:
            ModelError: it is a folder without a model that loads.
        """
        if self["cross_encoder"] is None:
            return None
        from ..encoders.cross_encoder import CrossEncoder

        return CrossEncoder(self["cross_encoder"])

    @property
    def principal(self) -> str:
        """The configured principal, else the local user.

        Raises:
            InputError: nothing is set and the operating system names no user.
        """
        if self["principal"]:
            return self["principal"]
        import getpass

        try:
            return getpass.getuser()
        except (KeyError, OSError) as error:
            raise InputError(
                "Expected a local user, got none",
                at="principal",
                hint=f"set {ENV_PREFIX}PRINCIPAL, or `principal` in {user_file()}.",
            ) from error

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per setting: name, value, origin, doc."""
        return [
            {"name": name, "value": _plain(value.value), "origin": value.origin, "doc": SETTINGS[name].doc}
            for name, value in self.values.items()
        ]


def user_file() -> Path:
    """The user's settings file; `SCOPED_RETRIEVAL` does not affect its location."""
    return user_folder("config") / "settings.toml"


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    chosen: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    user: Path | None = None,
) -> Settings:
    """Resolve every setting.

    Args:
        flags: values by setting name; None means that the flag was not given.
        chosen: the values of the flag `-c NAME=VALUE`.
        cwd: the base of relative flags and the start of the search for the project file; default: the working folder.
        environ: default: the process's environment.
        user: the user's settings file; default: `user_file()`.

    Raises:
        InputError: an unknown name, or a value of the wrong kind; the message names the place.
    """
    cwd = Path.cwd() if cwd is None else cwd.resolve()
    environ = os.environ if environ is None else environ
    user = user_file() if user is None else user
    project = next((file for folder in (cwd, *cwd.parents) if (file := folder / PROJECT_FILE).is_file()), None)

    given = _from_environment(environ, cwd) | _from_flags(chosen or {}, cwd, "-c {}") | _from_flags(flags or {}, cwd)
    files = [_from_file(user, "user file")] if user.is_file() else []
    if project and _speaks_for(project, given):
        settings = _resolved([*files, _from_file(project, "project file")], given, project.parent)
        if _speaks_for(project, settings.values):
            return settings
    return replace(_resolved(files, given, _base(cwd)), ignored=project)


def _base(cwd: Path) -> Path:
    """The folder of the default corpus and runs: the nearest one at or above with a corpus or a repository in it, else `cwd`."""
    kept = (f"{FOLDER}/corpus", ".git")
    return next((each for each in (cwd, *cwd.parents) if any((each / name).exists() for name in kept)), cwd)


def _speaks_for(project: Path, values: Mapping[str, SettingValue]) -> bool:
    """Whether the corpus and the runs of these values, where there are any, are in the folder of the project file."""
    return all(_is_below(values[name].value, project.parent) for name in ("corpus", "runs") if name in values)


def _is_below(place: Any, folder: Path) -> bool:
    return isinstance(place, Path) and place.resolve().is_relative_to(folder.resolve())


def _resolved(files: Sequence[_File], given: dict[str, SettingValue], base: Path) -> Settings:
    """The settings of these files, under those given by environment and flags; defaults are relative to `base`."""
    values = {name: SettingValue(_parsed(s, s.default, base, "default"), "default") for name, s in SETTINGS.items()}
    for file in files:
        values |= file[None]
    chosen = (values | given)["profile"]
    if chosen.value is not None:
        values |= _of_profile(chosen, files)
    values |= given
    if (boosted := values["reinforcementRecallBoostEnabled"]).value:
        named = dict.fromkeys((*values["plugins"].value, "reinforcement"))
        values["plugins"] = SettingValue(tuple(named), boosted.origin)
    return Settings(values)


def _from_environment(environ: Mapping[str, str], cwd: Path) -> dict[str, SettingValue]:
    values, named = {}, {name.lower(): name for name in SETTINGS}
    for variable in sorted(environ):
        if variable.startswith(ENV_PREFIX) and environ[variable]:
            name = variable.removeprefix(ENV_PREFIX).lower()
            setting = _declared(named.get(name, name), variable)
            values[setting.name] = SettingValue(
                _parsed(setting, environ[variable], cwd, variable), f"environment {variable}"
            )
    return values


def _from_flags(flags: Mapping[str, Any], cwd: Path, form: str = "--{}") -> dict[str, SettingValue]:
    values = {}
    for name, given in flags.items():
        if given is not None:
            flag = form.format(name)
            values[name] = SettingValue(_parsed(_declared(name, flag), given, cwd, flag), f"flag {flag}")
    return values


def _of_profile(chosen: SettingValue, files: Sequence[_File]) -> dict[str, SettingValue]:
    """The values of a profile; the project file takes precedence over the user file.

    Raises:
        InputError: no file has a profile of this name.
    """
    names = dict.fromkeys(name for file in files for name in file if name is not None)
    if chosen.value not in names:
        hint = f"settings under [{PROFILES}.NAME] in {user_file()} or {PROJECT_FILE} make a profile."
        raise InputError.one_of(names or ["(no profile)"], chosen.value, f"{chosen.origin}: profile", hint=hint)
    return {name: value for file in files for name, value in file.get(chosen.value, {}).items()}


def _from_file(file: Path, kind: str) -> _File:
    try:
        content = tomllib.loads(file.read_bytes().decode("utf-8"))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError("Expected TOML in UTF-8, got another encoding", at=f"{file}:{line}") from error
    except RecursionError as error:
        raise InputError("Expected TOML in UTF-8, got too deep nesting", at=file) from error
    except ValueError as error:
        from ..parsing.quoting import shown_problem  # imported here: most commands need no redaction

        raise InputError(f"Expected TOML in UTF-8, got invalid TOML ({shown_problem(str(error))})", at=file) from error
    except OSError as error:
        raise InputError(f"{error.strerror}: {file}") from error
    profiles = content.pop(PROFILES, {})
    if not isinstance(profiles, dict) or not all(isinstance(table, dict) for table in profiles.values()):
        raise InputError.described(f"tables [{PROFILES}.NAME]", "another value", f"{file}: {PROFILES}")
    for name, table in profiles.items():
        if "profile" in table:
            raise InputError("Expected no profile in a profile, got one", at=f"{file}: {PROFILES}.{name}.profile")
    return {
        profile: {name: _of_file(name, value, file, kind, profile) for name, value in table.items()}
        for profile, table in {None: content, **profiles}.items()
    }


def _of_file(name: str, given: Any, file: Path, kind: str, profile: str | None) -> SettingValue:
    at = f"{file}: {f'{PROFILES}.{profile}.' if profile else ''}{name}"
    setting = _declared(name, at)
    if kind != "project file":
        value = _parsed(setting, given, file.parent, at)
    elif not setting.project_file:
        raise InputError(f"Expected no {name} in a project file, got one", at=at, hint=_elsewhere(name))
    else:
        local = replace(setting, kind="path") if setting.kind == "place" else setting
        value = _parsed(local, given, file.parent, at)
        if isinstance(value, Path) and not _is_below(value, file.parent):
            raise InputError.described("a path in the folder of the file", "another", at, hint=_elsewhere(name))
    return SettingValue(value, f"{kind} {file}" + (f" [{PROFILES}.{profile}]" if profile else ""))


def _elsewhere(name: str) -> str:
    return f"set it in {user_file()} or as {ENV_PREFIX}{name.upper()}: a project file, which comes with the folder, may not."


def _declared(name: str, at: str) -> Setting:
    if name not in SETTINGS:
        from ..parsing.quoting import shown_key

        raise InputError.one_of(SETTINGS, shown_key(name), at.removesuffix(name) + shown_key(name))
    return SETTINGS[name]


def _parsed(setting: Setting, given: Any, base: Path, at: str) -> Any:
    """The value in the setting's kind; text is accepted for every kind, as environment variables are text."""
    if given is None:
        return None
    match setting.kind:
        case "place" if isinstance(given, (str, Path, ObjectPlace)) and str(given):
            try:
                place = place_of(given, at)
            except InputError as error:  # it quotes the URL
                raise InputError.expected("a folder, or a URL of one", _shown(given, at), at, hint=error.hint) from None
            return base / at_home(place, at) if isinstance(place, Path) else place
        case "weights" if isinstance(given, str) and given in setting.choices:
            return given
        case "path" | "weights" if isinstance(given, (str, Path)) and str(given):
            return _path(given, base, at)
        case "paths" if (items := _items(given)) is not None:
            return tuple(_path(item, base, at) for item in items)
        case "names" if (items := _items(given)) is not None:
            return tuple(dict.fromkeys(map(str, items)))
        case "list" if (items := _items(given)) is not None:
            if not items:
                raise InputError.described(f"{', '.join(setting.choices)} or several", "none", at)
            for item in items:
                _expect_choice(item, setting, at)
            return tuple(c for c in setting.choices if c in items)
        case "text" if isinstance(given, str) and given.strip():
            return given.strip()
        case "prompt" if isinstance(given, str):
            return given
        case "variable" if isinstance(given, str) and given.strip():
            from ..encoders.choice import expect_variable

            expect_variable(given.strip(), at)
            return given.strip()
        case "encoder" if isinstance(given, str) and given.strip():
            return _encoder(setting, given.strip(), base, at)
        case "choice":
            _expect_choice(given, setting, at)
            return given
        case "flag":
            return _flag(given, at)
        case "integer" | "number":
            return _number(setting, given, at)
    raise InputError.expected(f"a value of kind {setting.kind}", _shown(given, at), at)


def _items(given: Any) -> list[Any] | None:
    """The items of a list, or of a text with commas; None for any other value."""
    if isinstance(given, str):
        given = [item.strip() for item in given.split(",")]
    return [item for item in given if item != ""] if isinstance(given, (list, tuple)) else None


def _path(given: str | Path, base: Path, at: str) -> Path:
    if is_url(given):
        raise InputError.described("a path of this machine", "a URL", at)
    return base / at_home(Path(given), at)


def _expect_choice(given: Any, setting: Setting, at: str) -> None:
    if not any(_is_choice(str(given), choice) for choice in setting.choices):
        raise InputError.one_of(setting.choices, _shown(given, at), at)


def _shown(given: Any, at: str) -> Any:
    """The value if a message may quote it; it may be a password or a key in the wrong place."""
    from ..parsing.quoting import shown  # imported here: most commands need no redaction

    return shown(given, at)


def _encoder(setting: Setting, text: str, base: Path, at: str) -> str:
    """A model, a folder or a server. Every command reads the settings: no model is imported here."""
    _expect_choice(text, setting, at)
    kind, _, name = text.partition(":")
    if kind == _OPENAI:
        from ..encoders.choice import Served

        return f"{kind}:{Served.of(name, at)}"
    return f"{kind}:{base / at_home(Path(name), at)}" if name else text


def _is_choice(given: str, choice: str) -> bool:
    """Whether a value matches an entry of the list; a word in capitals after a colon matches any name."""
    kind, colon, name = choice.partition(":")
    return given.startswith(f"{kind}:") and given != f"{kind}:" if colon and name.isupper() else given == choice


def _flag(given: Any, at: str) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    return checks.flag(words.get(given.lower(), given) if isinstance(given, str) else given, at)


def _number(setting: Setting, given: Any, at: str) -> float | int:
    """A number from 0, or a whole one from 1, up to the maximum of the setting."""
    whole = setting.kind == "integer"
    with suppress(ValueError):
        given = (int if whole else float)(given) if isinstance(given, str) else given
    return checks.whole(given, at, 1, setting.most) if whole else checks.number(given, at, 0, setting.most)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, (Path, ObjectPlace)) else value
