"""Requests to a server and what comes back, with every way to fail turned into a sentence.

Knows HTTP and nothing of engines. Invariant: the key is sent to the one server it was given for (redirects are not
followed) and stands in no sentence; errors are `AppError`s, those that may pass by themselves marked as such.
"""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2

from app.clients.place import Place
from app.clients.server_words import Refusal, refusal_of
from app.clients.sse import SseError, SseParser
from app.errors import EngineUnreachableError

Result = TypeVar("Result")

END = "[DONE]"
"""Data of a stream's last event."""


@dataclass(frozen=True)
class Timeouts:
    """Seconds."""

    connect: float = 10.0
    ask: float = 60.0
    """For an answer that needs no decoding."""
    first: float = 900.0
    """From a request to the first token: a long prompt takes minutes on a processor."""
    between: float = 120.0
    """From one token to the next."""


@dataclass
class Patience:
    """How long a stream may be silent; its reader shortens it when the reply has begun."""

    limit_s: float
    what: str = "its first token"


class StoppedError(Exception):
    """The caller's event was set."""


class RefusedError(EngineUnreachableError):
    """The server answered, with a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


class LostError(EngineUnreachableError):
    """Nobody answered, or the connection broke: another try may do better."""


@dataclass
class Exchange:
    """One server. Close it."""

    place: Place
    key: str | None = field(default=None, repr=False)
    timeouts: Timeouts = Timeouts()
    transport: httpx2.AsyncBaseTransport | None = None
    """Of tests."""
    _client: httpx2.AsyncClient | None = None

    async def get(self, url: str) -> Any | None:
        """The JSON or text at an address; None when there is nothing of the kind. Raises LostError."""
        return await self._ask("GET", url, None)

    async def ask(self, url: str, body: dict[str, Any]) -> Any | None:
        """The JSON that answers a body; None when the server has no such address. Raises LostError, RefusedError."""
        return await self._ask("POST", url, body)

    async def events(
        self, url: str, body: dict[str, Any], stop: asyncio.Event, patience: Patience
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The objects of a streamed answer. Leaving the iterator closes the connection, which stops the server.

        Raises StoppedError when `stop` is set, LostError, RefusedError, and EngineUnreachableError for silence or
        nonsense.
        """
        async with aclosing(self._data(url, body, stop, patience)) as data:
            async for item in data:
                if item.strip() == END:
                    return
                yield self._object(item)

    async def close(self) -> None:
        """Let go of connections; safe to call twice."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _data(
        self, url: str, body: dict[str, Any], stop: asyncio.Event, patience: Patience
    ) -> AsyncGenerator[str, None]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience.limit_s

        async def soon(work: Awaitable[Result]) -> Result:
            return await self._unless(stop, work, deadline - loop.time(), patience)

        async with self._sent("POST", url, body, soon) as response:
            if response.status_code != 200:
                raise await self._refused(response, soon)
            parser = SseParser()
            pieces = response.aiter_bytes()
            more = True
            while more:
                try:
                    found = parser.feed(await soon(anext(pieces)))
                except StopAsyncIteration:
                    more, found = False, parser.finish()
                except SseError as error:
                    raise EngineUnreachableError(f"{self._name} sent {error}.") from error
                for item in found:
                    yield item
                    deadline = loop.time() + patience.limit_s  # a comment that keeps alive is no progress

    async def _ask(self, method: str, url: str, body: dict[str, Any] | None) -> Any | None:
        async def soon(work: Awaitable[Result]) -> Result:
            patience = Patience(self.timeouts.ask, "an answer")
            return await self._unless(asyncio.Event(), work, patience.limit_s, patience)

        async with self._sent(method, url, body, soon) as response:
            if response.status_code in (404, 405, 501):
                return None
            if response.status_code != 200:
                raise await self._refused(response, soon)
            text = (await soon(response.aread())).decode("utf-8", "replace")
        try:
            return json.loads(text)
        except (ValueError, RecursionError):  # the latter: a hundred thousand brackets
            return text

    @asynccontextmanager
    async def _sent(
        self,
        method: str,
        url: str,
        body: dict[str, Any] | None,
        soon: Callable[[Awaitable[httpx2.Response]], Awaitable[httpx2.Response]],
    ) -> AsyncGenerator[httpx2.Response, None]:
        client = self._open()
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        request = client.build_request(method, url, json=body, headers=headers)
        response: httpx2.Response | None = None

        async def send() -> httpx2.Response:
            nonlocal response  # it is closed even when it arrives in the moment in which we are stopped
            response = await client.send(request, stream=True)
            return response

        try:
            yield await soon(send())
        except httpx2.ConnectTimeout as error:
            raise LostError(f"{self._name} does not answer within {self.timeouts.connect:.0f} s.") from error
        except httpx2.ConnectError as error:
            raise LostError(f"Nobody answers at {self.place.shown}: {_cause(error)}. Is the server running?") from error
        except httpx2.TransportError as error:
            raise LostError(f"{self._name} broke the connection off: {_cause(error)}.") from error
        except (httpx2.DecodingError, httpx2.InvalidURL) as error:
            raise EngineUnreachableError(f"{self._name} cannot be understood: {_cause(error)}.") from error
        finally:
            if response is not None:
                await response.aclose()

    async def _refused(
        self, response: httpx2.Response, soon: Callable[[Awaitable[bytes]], Awaitable[bytes]]
    ) -> RefusedError:
        text = (await soon(response.aread())).decode("utf-8", "replace")
        return RefusedError(refusal_of(self.place.shown, response.status_code, response.headers, text, self.key))

    async def _unless(self, stop: asyncio.Event, work: Awaitable[Result], limit_s: float, patience: Patience) -> Result:
        """The result of `work`, unless `stop` or the time comes first."""
        task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({task, stopping}, timeout=max(limit_s, 0), return_when=asyncio.FIRST_COMPLETED)
            if stopping.done():
                raise StoppedError
            if not task.done():
                raise EngineUnreachableError(
                    f"{self._name} was silent for {patience.limit_s:.0f} s: no {patience.what}."
                )
        finally:
            for waiting in (task, stopping):
                waiting.cancel()
            await asyncio.wait({task, stopping})
            if not task.cancelled():
                task.exception()  # seen, whichever of the two ends we take
        return task.result()

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            transport = self.transport
            if transport is None and self.place.socket is not None:
                transport = httpx2.AsyncHTTPTransport(uds=self.place.socket)
            self._client = httpx2.AsyncClient(
                transport=transport,
                timeout=httpx2.Timeout(None, connect=self.timeouts.connect),
                headers={"user-agent": "redraft"},
                trust_env=not self.place.is_local,  # a proxy of the environment is for what lies outside
            )
        return self._client

    @property
    def _name(self) -> str:
        return f"The engine at {self.place.shown}"

    def _object(self, item: str) -> dict[str, Any]:
        try:
            found = json.loads(item)
        except (ValueError, RecursionError) as error:
            raise EngineUnreachableError(f"{self._name} sent something that is no JSON.") from error
        if not isinstance(found, dict):
            raise EngineUnreachableError(f"{self._name} sent something that is no JSON object.")
        return found


def _cause(error: Exception) -> str:
    """The system's words for a failure, without a full stop."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLError):
            return f"its certificate or protocol is not accepted ({seen.reason or seen})"
        if isinstance(seen, OSError) and seen.errno:
            return os.strerror(seen.errno)
        seen = seen.__cause__ or seen.__context__
    return str(error).rstrip(".") or type(error).__name__
