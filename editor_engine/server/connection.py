"""One HTTP connection, with the patience that uvicorn's own lacks: for a request to arrive and for an answer to leave.

Knows bytes and clocks, nothing of what is asked. Invariant: a client that stops sending in the middle of a request, or
stops reading in the middle of an answer, holds its connection for the limits' time and no longer.
"""

import asyncio
import socket
import struct

from uvicorn.protocols.http.h11_impl import H11Protocol

from editor_engine.server.options import Limits

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for 0 seconds."""


def connection_class(limits: Limits) -> type[H11Protocol]:
    """The protocol to give uvicorn, with these limits."""

    class PatientConnection(H11Protocol):
        _reading: asyncio.TimerHandle | None = None
        _writing: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own type
            super().connection_made(transport)
            self._watch_reading()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_reading()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._watch_reading()

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._writing is None:
                self._writing = self.loop.call_later(limits.write_s, self._drop)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._stop_writing_clock()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_reading_clock()
            self._stop_writing_clock()
            super().connection_lost(exc)

        def _watch_reading(self) -> None:
            if not self._request_is_coming():
                self._stop_reading_clock()
            elif self._reading is None and not self.transport.is_closing():
                self._reading = self.loop.call_later(limits.read_s, self.transport.abort)

        def _request_is_coming(self) -> bool:
            """Part of a request is here, or nothing at all has come yet; between requests uvicorn has its own limit."""
            if self.cycle is None or self.cycle.more_body:
                return True
            return self.cycle.response_complete and bool(self.conn.trailing_data[0])

        def _drop(self) -> None:
            # Without this the system would keep what the client does not take, for as long as the client lives.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

        def _stop_reading_clock(self) -> None:
            if self._reading is not None:
                self._reading.cancel()
                self._reading = None

        def _stop_writing_clock(self) -> None:
            if self._writing is not None:
                self._writing.cancel()
                self._writing = None

    return PatientConnection
