"""Where corpora and runs are stored: a local folder, or a prefix of an object store that fsspec reaches by URL.

Gives: `place_of`, which turns a path or URL into a `Place`. A folder is a `pathlib.Path`; `s3://bucket/corpus` is an
`ObjectPlace`, which has the few methods of a path that corpora and runs use. fsspec manages credentials and endpoints:
by the environment or its configuration files.

Note: an object store has no rename, no append and no folders. A put is atomic, and durable when it returns; an object
that refers to others is put after them; an object with a single writer is made with `create`, which fails if it exists.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from secrets import token_hex
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from ...nodes.errors import InputError, ScopedRetrievalError, StoreError

_LOCAL = ("file", "local")
_EXTRAS = {"s3": "remote", "s3a": "remote"}
"""Protocols whose package an extra of this package installs."""
_PATTERN = frozenset("*?[")
_SOUND: list[Any] = []
"""The stores that this process has found to create an object only once."""
_T = TypeVar("_T")


class Stat(NamedTuple):
    """The metadata of an object: its size in bytes."""

    st_size: int


class ObjectPlace:
    """An object, or a prefix that represents a folder. Methods are those of `pathlib.Path`, with the same meaning."""

    __slots__ = ("_info", "_key", "fs", "protocol")

    def __init__(self, fs: Any, protocol: str, key: str, info: dict[str, Any] | None = None) -> None:
        self.fs, self.protocol, self._key, self._info = fs, protocol, key.rstrip("/"), info

    def __truediv__(self, name: str | Path | PurePosixPath) -> ObjectPlace:
        below = PurePosixPath(name).as_posix()
        return self if below == "." else ObjectPlace(self.fs, self.protocol, f"{self._key}/{below}")

    def __str__(self) -> str:
        return f"{self.protocol}://{self._key.lstrip('/')}"

    def __repr__(self) -> str:
        return f"ObjectPlace({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPlace) and str(self) == str(other)

    def __lt__(self, other: ObjectPlace) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return place_of, (str(self),)

    @property
    def name(self) -> str:
        return self._key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPlace:
        return ObjectPlace(self.fs, self.protocol, self._key.rpartition("/")[0])

    def with_name(self, name: str) -> ObjectPlace:
        return self.parent / name

    def resolve(self) -> ObjectPlace:
        return self

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        return self._kind() == "file"

    def is_dir(self) -> bool:
        return self._kind() == "directory" if self._info else any(True for _ in self.iterdir())

    def stat(self) -> Stat:
        info = self._info or self._translated(lambda: self.fs.info(self._key))
        return Stat(int(info["size"] or 0))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a store has no folders."""

    def read_bytes(self) -> bytes:
        """The content of the object."""
        return self._translated(lambda: self.fs.cat_file(self._key))

    def open(self, mode: str = "rb") -> io.BytesIO:
        """The content of the object."""
        assert mode == "rb", mode
        return io.BytesIO(self.read_bytes())

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Put the object, replacing an existing one; it is durable when this returns."""
        self._translated(lambda: self.fs.pipe_file(self._key, bytes(data)))

    def create(self, data: bytes) -> None:
        """Put the object, unless one exists.

        Raises:
            FileExistsError: it exists. A successful put whose response was lost may raise it, too: read the object to
                find out.
        """
        self._translated(lambda: self.fs.pipe_file(self._key, data, mode="create"))

    def expect_create(self) -> None:
        """Refuse a store that creates an object twice: two writers would overwrite each other.

        Raises:
            StoreError: it does.
        """
        if self.fs in _SOUND:
            return
        probe = self / f"probe-{token_hex(16)}"
        probe.create(b"1")
        try:
            probe.create(b"2")
        except FileExistsError:
            _SOUND.append(self.fs)
            return
        finally:
            probe.unlink(missing_ok=True)
        raise StoreError(
            f"Expected a store that creates an object once, got one that overwrites it - at {self}",
            hint="use one with conditional writes (S3 `If-None-Match`), or a folder.",
        )

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            self._translated(lambda: self.fs.rm_file(self._key))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_below(self) -> None:
        """Remove every object below this prefix."""
        if keys := [self._below(name)._key for name in self.files()]:
            self._translated(lambda: self.fs.rm(keys))

    def iterdir(self) -> Iterator[ObjectPlace]:
        """Objects and prefixes directly below; empty if there are none."""
        try:
            listed = self._translated(lambda: self.fs.ls(self._key, detail=True, refresh=True))
        except (FileNotFoundError, NotADirectoryError):
            return
        for info in listed:
            if info["name"].rstrip("/") != self._key:
                yield ObjectPlace(self.fs, self.protocol, info["name"], info)

    def files(self) -> list[str]:
        """Every object below, as names relative to this prefix, sorted."""
        try:
            found = self._translated(lambda: self.fs.find(self._key, refresh=True))
        except FileNotFoundError:
            return []
        start = len(self._key) + 1
        return sorted(name[start:] for name in found if name.startswith(f"{self._key}/"))

    def read_all(self, names: list[str]) -> list[bytes]:
        """Read many objects below in one call."""
        keys = [self._below(name)._key for name in names]
        found = self._translated(lambda: self.fs.cat(keys)) if keys else {}
        return [found[key] for key in keys]

    def _below(self, name: str) -> ObjectPlace:
        return ObjectPlace(self.fs, self.protocol, f"{self._key}/{name}")

    def _kind(self) -> str | None:
        if self._info:
            return self._info["type"]
        try:
            return self._translated(lambda: self.fs.info(self._key, refresh=True))["type"]
        except FileNotFoundError:
            return None

    def _translated(self, call: Callable[[], _T]) -> _T:
        """The result of a call; an error of the store becomes one with a hint."""
        try:
            return call()
        except (ScopedRetrievalError, FileExistsError, NotADirectoryError, IsADirectoryError):
            raise
        except FileNotFoundError as error:
            if "NoSuchBucket" in _codes(error):
                bucket = self._key.lstrip("/").partition("/")[0]
                hint = "make the bucket first; this tool makes none."
                raise StoreError(f"Expected a bucket, got none - at {self.protocol}://{bucket}", hint=hint) from error
            raise FileNotFoundError(2, "no such object", str(self)) from error
        except Exception as error:  # every fsspec store raises its own errors
            raise _refused(error, str(self)) from error


Place: TypeAlias = Path | ObjectPlace
"""A location: a local path or an object."""


def is_url(text: object) -> bool:
    """Whether a text names its protocol, as `s3://bucket/corpus` does."""
    return isinstance(text, str) and "://" in text


def place_of(given: str | Place, at: str = "place") -> Place:
    """The place for a path or URL; `file:///folder` is a local folder. `at` is where the value was given.

    Raises:
        InputError: there is no such protocol, or its package is not installed; the hint names it. Or the URL contains
            one of `*?[`, which fsspec treats as a wildcard.
        StoreError: its credentials or options are not accepted by the store.
    """
    if isinstance(given, ObjectPlace):
        return given
    if not is_url(given):
        place = Path(given)
        if (first := place.parts[0] if place.parts else "").endswith(":") and len(first) > 2:
            hint = "pass the URL as text: `Path` replaces `//` by `/`."
            raise InputError.expected("a folder, or a URL", str(given), at, hint=hint)
        return place
    protocol, _, rest = str(given).partition("://")
    if protocol in _LOCAL:
        return Path(rest)
    if not rest.strip("/"):
        raise InputError.expected(f"a URL such as {protocol}://bucket/folder", str(given), at)
    if not _PATTERN.isdisjoint(rest):
        hint = "object stores treat it as a wildcard; choose another name."
        raise InputError.expected("a URL without any of *?[", str(given), at, hint=hint)
    hint = f"install scoped-retrieval[{_EXTRAS.get(protocol, 'remote')}], and fsspec's package for {protocol}"
    hint = f"install scoped-retrieval[{_EXTRAS[protocol]}]" if protocol in _EXTRAS else hint
    try:
        from fsspec.core import url_to_fs

        fs, key = url_to_fs(str(given), use_listings_cache=False)
    except ImportError as error:
        raise InputError(f"Expected a package for {protocol}, got none - at {given}", hint=hint) from error
    except ValueError as error:
        raise InputError(f"Expected a protocol that fsspec knows, got {protocol} - at {given}", hint=hint) from error
    except Exception as error:  # every fsspec store raises its own errors
        raise _refused(error, str(given)) from error
    return ObjectPlace(fs, protocol, key)


def fixed_place(given: str | Place) -> Place:
    """The place for a path or URL, with a relative path made absolute, so a change of folder does not affect it."""
    place = place_of(given)
    return place.absolute() if isinstance(place, Path) else place


def at_home(path: Path, at: str) -> Path:
    """Expand a path that may begin with `~`; `at` is where it was given.

    Raises:
        InputError: the home folder is unknown.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise InputError.expected("a path whose ~ is the home of a user", str(path), at) from error


def user_folder(kind: Literal["config", "state"]) -> Path:
    """The folder of the user's settings, or of what is known about the user's corpora.

    Raises:
        InputError: the user has no home folder.
    """
    import platformdirs

    try:
        return Path(getattr(platformdirs, f"user_{kind}_dir")("scoped-retrieval", appauthor=False))
    except RuntimeError as error:
        hint = f"set HOME to a folder of the user, or XDG_{kind.upper()}_HOME."
        raise InputError.described("a home folder", "none", "HOME", hint=hint) from error


def _refused(error: Exception, at: str) -> StoreError:
    """An error of a store as one of this package, in the store's own words."""
    why = (error.strerror if isinstance(error, OSError) else None) or ", ".join(sorted(_codes(error)))
    hint = (
        "check the address (AWS_ENDPOINT_URL, FSSPEC_S3_ENDPOINT_URL), the credentials (AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY), and what they permit."
    )
    return StoreError(f"Expected the store to answer, got {why or type(error).__name__} - at {at}", hint=hint)


def _codes(error: BaseException) -> set[str]:
    """The error codes in the store's answers, of the error and its causes: `NoSuchBucket`, `AccessDenied`."""
    found, seen, each = set[str](), set[int](), error
    while each is not None and id(each) not in seen:  # a re-raised error may be in its own chain
        seen.add(id(each))
        answer = getattr(each, "response", None)
        if isinstance(answer, dict) and isinstance(answer.get("Error"), dict):
            found.add(str(answer["Error"].get("Code")))
        each = each.__cause__ or each.__context__
    return found
