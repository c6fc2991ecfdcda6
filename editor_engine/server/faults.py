"""What the server answers instead of a result: a status, a stable word and a sentence, in OpenAI's shape.

Knows nothing of where a fault comes from. Invariant: no text of a request and no traceback is in an answer.
"""

from typing import Any

from starlette.exceptions import HTTPException

from editor_engine.errors import (
    ContextOverflowError,
    EngineError,
    OutOfMemoryError,
    RequestError,
    UnsupportedModelError,
)
from editor_engine.wire import error_to_json

_STATUS: dict[type[EngineError], int] = {
    RequestError: 400,
    ContextOverflowError: 400,
    UnsupportedModelError: 400,  # of a model that runs: its chat template refuses this conversation
    OutOfMemoryError: 503,
}
_KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_KINDS |= {405: "invalid_request_error", 413: "invalid_request_error", 429: "rate_limit_error"}


class ServerFault(HTTPException):
    """An answer other than 200; `detail` is one clear sentence for whoever asked.

    A kind of HTTPException, because FastAPI lets no other exception through that comes up while a body is read.
    """

    def __init__(
        self, status: int, code: str, message: str, *, param: str | None = None, retry_after_s: int | None = None
    ) -> None:
        headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
        super().__init__(status, message, headers | ({"www-authenticate": "Bearer"} if status == 401 else {}))
        self.code = code
        """Stable word for programs."""
        self.param = param
        """Field of the request that is at fault; None: no single one."""

    def body(self) -> dict[str, Any]:
        """The answer, or the last event of a stream that has begun."""
        kind = _KINDS.get(self.status_code, "server_error")
        return {"error": {"message": self.detail, "type": kind, "param": self.param, "code": self.code}}


def busy(waiting: int, retry_after_s: int) -> ServerFault:
    """The queue is full."""
    sentence = f"{waiting} requests are waiting already; try again in {retry_after_s} s."
    return ServerFault(429, "queue_full", sentence, retry_after_s=retry_after_s)


def stopping() -> ServerFault:
    """The server was asked to stop."""
    return ServerFault(503, "stopping", "The server is stopping; try again when it has started anew.", retry_after_s=5)


def too_long(limit_s: float) -> ServerFault:
    """The request ran into the server's limit of time."""
    return ServerFault(504, "time_limit", f"The request was cut after {limit_s:g} s, the longest this server runs one.")


def fault_of(error: EngineError) -> ServerFault:
    """The answer to a request that the engine refused or failed."""
    said = error_to_json(error)
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    return ServerFault(status, said["code"], said["message"], retry_after_s=5 if status == 503 else None)
