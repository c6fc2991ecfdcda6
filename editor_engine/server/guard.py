"""What every request passes before anything reads it: the Host header, the key, the size of the body.

Plain ASGI, around the application. Knows nothing of completions. Invariants: a page in a browser can neither ask this
server nor read from it (its Host is checked, and JSON from elsewhere needs a permission nobody gives); no exception
gets out, and what is said of one has none of its words.
"""

import hmac
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from editor_engine.server.faults import ServerFault
from editor_engine.server.options import LOOPBACK, ServeOptions


class Guard:
    """The application as the outside may reach it."""

    def __init__(self, app: ASGIApp, options: ServeOptions, on_fault: Callable[[BaseException], None]) -> None:
        self._app = app
        self._key = options.key
        host = options.host.lower()
        # Beyond loopback this machine has many names; there the key keeps out pages that rebind one of their own.
        self._hosts = LOOPBACK | {host} if options.key is None or host in LOOPBACK else None
        self._body_bytes = options.limits.body_bytes
        self._room = options.limits.held_bytes  # what bodies may still take
        self._on_fault = on_fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # lifespan; uvicorn is told that there are no websockets
            await self._app(scope, receive, send)
            return
        began, taken = False, 0

        async def measured() -> Message:
            nonlocal taken
            message = await receive()
            size = len(message.get("body", b""))
            taken, self._room = taken + size, self._room - size
            if taken > self._body_bytes:
                raise self._too_large()
            if self._room < 0:
                raise ServerFault(503, "busy", "The server holds too many large requests.", retry_after_s=1)
            return message

        async def watched(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, measured, watched)
        except ServerFault as fault:
            if not began:
                await answer(fault)(scope, receive, send)
        except Exception as error:
            self._on_fault(error)
            if not began:
                await answer(ServerFault(500, "internal", "The server failed; its log has the place."))(
                    scope, receive, send
                )
        finally:
            self._room += taken

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        length = headers.get("content-length", "0")  # digits, says h11; any number of them
        if len(length) > 12 or int(length) > self._body_bytes:
            raise self._too_large()
        if not over_tcp(scope):
            return  # the socket's mode says who may connect, and no browser can
        if self._hosts is not None and _host_name(headers.getlist("host")) not in self._hosts:
            raise ServerFault(403, "host", "This server answers to its own name only; check the Host header.")
        if self._key is not None and not self._knows(headers.getlist("authorization")):
            raise ServerFault(401, "key", "This server wants its key as bearer token (REDRAFT_ENGINE_KEY).")

    def _knows(self, shown: list[str]) -> bool:
        assert self._key is not None
        scheme, _, token = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
        # Headers are latin-1 to ASGI; the comparison takes as long whichever byte differs.
        same = hmac.compare_digest(token.strip().encode("latin-1"), self._key.encode("utf-8"))
        return same and scheme.lower() == "bearer"

    def _too_large(self) -> ServerFault:
        return ServerFault(413, "body_too_large", f"A request may have {self._body_bytes} bytes at most.")


def answer(fault: ServerFault) -> JSONResponse:
    """The fault as a response. The connection ends where the body may not have been read."""
    headers = {
        **(fault.headers or {}),
        **({"connection": "close"} if fault.status_code in (401, 403, 413, 503) else {}),
    }
    return JSONResponse(fault.body(), fault.status_code, headers)


def over_tcp(scope: Scope) -> bool:
    """False for a connection through the unix socket, which has no port."""
    server: Any = scope.get("server")
    return bool(server) and server[1] is not None


def _host_name(values: list[str]) -> str | None:
    """The name in the one Host header, without its port; None when there is none or more than one."""
    if len(values) != 1:
        return None
    value = values[0].strip().lower()
    if value.startswith("["):
        name, bracket, _ = value[1:].partition("]")
        return name if bracket else None
    return value.partition(":")[0]
