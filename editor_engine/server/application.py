"""The routes: OpenAI's chat completions and models, and health, metrics and token counts of our own.

Knows who answers what; the queue is `dispatcher`, the answers are `answers`. Invariant: every answer other than 200 has
the one shape of `faults`.
"""

import time
import uuid
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from editor_engine.server.answers import CompletionAnswer
from editor_engine.server.chat_reply import ChatReply
from editor_engine.server.chat_request import ChatBody
from editor_engine.server.dispatcher import Dispatcher
from editor_engine.server.faults import ServerFault
from editor_engine.server.guard import answer
from editor_engine.server.metrics import Metrics
from editor_engine.wire import identity_of, identity_to_json


@dataclass(frozen=True)
class Served:
    """What the routes answer from."""

    dispatcher: Dispatcher
    metrics: Metrics
    model_id: str
    version: str
    """Of the program."""
    started: int
    """Unix time, seconds."""


class Counts(BaseModel):
    """Answer of /v1/redraft/count."""

    prompt_tokens: int
    source_tokens: int


class Fault(BaseModel):
    """Every answer other than 200."""

    error: dict[str, str | None]


_STATUSES = (400, 401, 403, 404, 405, 413, 429, 500, 503, 504)
_FAULTS: dict[int | str, dict[str, Any]] = {status: {"model": Fault} for status in _STATUSES}


def application(served: Served) -> FastAPI:
    """The routes over one dispatcher."""
    app = FastAPI(
        title="Redraft",
        version=served.version,
        docs_url=None,  # their pages fetch scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        responses=_FAULTS,
    )
    app.add_exception_handler(HTTPException, _http_fault)
    app.add_exception_handler(RequestValidationError, _invalid)
    _add_completions(app, served)
    _add_facts(app, served)
    described = app.openapi

    def openapi() -> dict[str, Any]:
        return _without_422(described())

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to change the description
    return app


def _add_completions(app: FastAPI, served: Served) -> None:
    @app.post("/v1/chat/completions", response_model=None)
    async def chat_completions(body: ChatBody) -> Response:
        """A chat completion; with `stream`, as server-sent events."""
        _require_model(body.model, served)
        reply = ChatReply(
            id=f"chatcmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=served.model_id,
            fingerprint=_fingerprint(served),
            events_wanted=body.redraft is not None,
        )
        return CompletionAnswer(
            served.dispatcher, body.to_request(), reply, stream=bool(body.stream), usage=body.wants_usage
        )

    @app.post("/v1/redraft/count")
    async def count(body: ChatBody) -> Counts:
        """Exact token counts of a completion, without running it."""
        _require_model(body.model, served)
        prompt, source = await served.dispatcher.count(body.to_request())
        return Counts(prompt_tokens=prompt, source_tokens=source)


def _add_facts(app: FastAPI, served: Served) -> None:
    model = {"id": served.model_id, "object": "model", "created": served.started, "owned_by": "redraft"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The one model that is served."""
        return {"object": "list", "data": [model]}

    @app.get("/v1/models/{model_id:path}")
    async def one_model(model_id: str) -> dict[str, Any]:
        """The model of that id."""
        _require_model(model_id, served)
        return model

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """What the server is doing, and what its engine is (null while it loads)."""
        dispatcher = served.dispatcher
        engine, loading = dispatcher.engine, dispatcher.loading
        identity = None if engine is None else identity_of(engine.info, engine.notes, served.model_id)
        return {
            "status": dispatcher.status.value,
            "loading": None if loading is None else {"done": loading[0], "total": loading[1]},
            "waiting": dispatcher.waiting,
            "version": served.version,
            "engine": None if identity is None else identity_to_json(identity),
        }

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(served.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _require_model(model_id: str, served: Served) -> None:
    if model_id != served.model_id:
        sentence = f"This server has the model {served.model_id!r} and no other."
        raise ServerFault(404, "model_not_found", sentence, param="model")


def _fingerprint(served: Served) -> str:
    engine = served.dispatcher.engine
    weights = "loading" if engine is None else f"{engine.info.contract_version}-{engine.info.sha256[:12]}"
    return f"redraft-{served.version}-{weights}"


async def _http_fault(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, ServerFault):
        return answer(error)
    assert isinstance(error, HTTPException)
    fault = ServerFault(error.status_code, "http", f"{error.detail}.".replace("..", "."))
    fault.headers = {**(error.headers or {})}
    return answer(fault)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    *path, last = first["loc"][1:] or ("",)
    # Between names of fields pydantic names the alternative of a union that it tried; a name from the request is last.
    names = [part for part in path if not _is_alternative(part)]
    names += [last] if first["type"] == "extra_forbidden" or not _is_alternative(last) else []
    where = ".".join(map(str, names)).encode("utf-8", "backslashreplace").decode("utf-8")
    return answer(ServerFault(400, "request", f"{where or 'The body'}: {first['msg']}.", param=where or None))


def _is_alternative(part: str | int) -> bool:
    return isinstance(part, str) and (part == "str" or not part.isidentifier())


def _without_422(description: dict[str, Any]) -> dict[str, Any]:
    """FastAPI promises 422 for bodies that do not fit; here that is 400, as OpenAI's clients expect."""
    for path in description["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
    return description
