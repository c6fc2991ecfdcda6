"""Runs a job for one client and sends what comes of it: one JSON object, or a stream of server-sent events.

Knows ASGI and the order of an answer. Invariants: a client that goes away stops its job at once, whether it waits, is
prefilled or decodes; a fault before the first event is an answer with its own status, after that the last event of the
stream.
"""

import asyncio
import json
from contextlib import aclosing
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from editor_engine.events import Finished
from editor_engine.requests import CompletionRequest
from editor_engine.server.chat_reply import ChatReply
from editor_engine.server.dispatcher import Dispatcher, Job
from editor_engine.server.faults import ServerFault

_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # asks a proxy in between to pass events on as they come
]


class CompletionAnswer(Response):
    """The answer to a chat completion."""

    def __init__(
        self, dispatcher: Dispatcher, request: CompletionRequest, reply: ChatReply, *, stream: bool, usage: bool
    ) -> None:
        super().__init__()
        self._dispatcher = dispatcher
        self._request = request
        self._reply = reply
        self._stream = stream
        self._usage = usage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._dispatcher.job(self._request) as job:
            leaving = asyncio.create_task(self._leave_when_gone(receive, job))
            try:
                if self._stream:
                    await self._send_events(job, send)
                elif (whole := await self._whole(job)) is not None:
                    await JSONResponse(whole)(scope, receive, send)
            finally:
                leaving.cancel()

    async def _leave_when_gone(self, receive: Receive, job: Job) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._dispatcher.leave(job)

    async def _whole(self, job: Job) -> dict[str, Any] | None:
        """None: the client has gone."""
        async with aclosing(job.events()) as events:
            async for event in events:
                self._reply.take(event)
                if isinstance(event, Finished):
                    return self._reply.completion(event)
        return None

    async def _send_events(self, job: Job, send: Send) -> None:
        began = False
        try:
            async with aclosing(job.events()) as events:
                async for event in events:
                    chunks = [] if began else [self._reply.opening()]
                    chunk = self._reply.take(event)
                    chunks += [] if chunk is None else [chunk]
                    if isinstance(event, Finished) and self._usage:
                        chunks.append(self._reply.usage_chunk(event.stats))
                    if not began:
                        began = True
                        await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
                    await _send_data(send, *map(_json, chunks))
                    await asyncio.sleep(0)  # neither a full inbox nor a quick client keeps the others waiting
        except ServerFault as fault:
            if not began:
                raise
            await _send_data(send, _json(fault.body()))
        await _send_data(send, b"[DONE]")
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_data(send: Send, *data: bytes) -> None:
    body = b"".join(b"data: " + item + b"\n\n" for item in data)
    await send({"type": "http.response.body", "body": body, "more_body": True})


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8")
