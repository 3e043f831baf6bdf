"""An object store in memory that takes some puts and then no more, as one whose quota is used up or whose host is gone;
or takes them, and its answers are lost; or does not answer who reads some of its objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scoped_retrieval.pipeline.storage.places import ObjectPlace, place_of

_PUTS = ("pipe_file", "put_file", "pipe")


class FailingStore:
    """Everything that the store in memory does; after `puts` of them, a put raises `error`.

    With `takes`, it is taken all the same. With `silent`, an object cannot be read once a put has raised. Nor can one
    whose name holds `unread`.
    """

    def __init__(self, puts: int | None = None, error: OSError | None = None) -> None:
        self.puts, self.error = puts, error or OSError(28, "No space left on device")
        self.takes = self.silent = self._raised = False
        self.unread: str | None = None
        self._store = place_of("memory://any").fs

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name == "cat_file" and self.silent and self._raised and self.puts == 0:
            raise self.error
        if name == "cat_file" and self.unread is not None:
            return self._read
        return self._counted(found) if name in _PUTS else found

    def _read(self, key: str, *args: Any, **kwargs: Any) -> bytes:
        if self.unread is not None and self.unread in key:
            raise TimeoutError
        return self._store.cat_file(key, *args, **kwargs)

    def _counted(self, put: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.puts is not None:
                if not self.puts:
                    if self.takes:
                        put(*args, **kwargs)
                    self._raised = True
                    raise self.error
                self.puts -= 1
            return put(*args, **kwargs)

        return counted

    def at(self, name: str) -> ObjectPlace:
        """A place in this store."""
        return ObjectPlace(self, "memory", f"/{name}")


class PausedStore(FailingStore):
    """A store whose user is paused before its n-th call: `turn` comes first. `calls` are those that are left."""

    def __init__(self, turn: Callable[[], object], calls: int) -> None:
        super().__init__()
        self.turn, self.calls = turn, calls

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not callable(found):
            return found

        def called(*args: Any, **how: Any) -> Any:
            self.calls -= 1
            if self.calls == -1:
                self.turn()
            return found(*args, **how)

        return called
