"""The protocol of a connection: HTTP/1.1 as uvicorn has it, closed where the head of a request does not come in time.

Gives: `protocol_of` settings, a class for `uvicorn.run`. The guard watches bodies; a head that is never finished comes to
no application at all, so that only the connection itself can be watched.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["protocol_of"]


def protocol_of(seconds: float) -> type[H11Protocol]:
    """Connections that wait so long for the head of each request."""

    class Protocol(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _watch(self) -> None:
            """Start the clock where no request is in work, and stop it where one is."""
            if self._in_work():
                self._stop()
            elif self._late is None:
                self._late = self.loop.call_later(seconds, self._give_up)

        def _in_work(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _give_up(self) -> None:
            self._late = None
            if not self._in_work() and not self.transport.is_closing():
                self.transport.close()

        def _stop(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Protocol
