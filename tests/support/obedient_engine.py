"""An engine that does what the request's last message says, in this process or, run as a program, as a child's.

Orders, one a line of the message: `say N` emits N texts; `wait` blocks, as a long pass does, until it is interrupted;
`fail WORD` raises that error of the wire; `fault` raises what nobody foresaw; `print` writes to stdout, as a careless
library would; `end N` ends the process with that status, `kill N` by that signal, `deaf` blocks
for good, whatever is asked.
"""

import os
import sys
import threading
from collections.abc import Iterator

from editor_engine.errors import RequestError
from editor_engine.events import (
    EngineEvent,
    Finished,
    FinishReason,
    Pass,
    Prefill,
    Provenance,
    Span,
    Started,
    Stats,
    Text,
)
from editor_engine.models.target import ModelInfo
from editor_engine.requests import CancelFlag, CompletionRequest, Message
from editor_engine.wire import error_from_json

PATIENCE_S = 30
"""A hung test fails; none waits this long."""


def ask(*orders: str) -> CompletionRequest:
    """A request with these orders."""
    return CompletionRequest((Message("user", "\n".join(orders)),), 8, source="a\nb\n")


class ObedientEngine:
    """Has of `Engine` what the clients use."""

    notes = ("a note",)
    choice = "Model: obedient, nobody named one."
    info = ModelInfo("obedient", "none", "c" * 64, 0, 4096, "cpu", 2, "scalar", 1)

    def __init__(self) -> None:
        self.busy = False
        self.waiting = threading.Event()
        """Set once a `wait` has begun."""

    def count(self, request: CompletionRequest) -> tuple[int, int]:
        for line in request.messages[-1].content.splitlines():
            list(self._obey(line, threading.Event()))
        return 11, 7

    def complete(self, request: CompletionRequest, cancel: CancelFlag) -> Iterator[EngineEvent]:
        if self.busy:
            raise RequestError("The engine is busy with another request.")
        self.busy = True
        interrupted = threading.Event()
        said: list[EngineEvent] = []
        try:
            with cancel.interrupting(interrupted.set):
                for line in request.messages[-1].content.splitlines():
                    if cancel.is_set():
                        break
                    for event in self._obey(line, interrupted):
                        said.append(event)
                        yield event
                reason = FinishReason.CANCELLED if cancel.is_set() else FinishReason.STOP
                yield Finished(reason, tuple(range(len(said))), Stats(11, 0, 3, 0.5, None, None, 0.0, 3, 2, 1))
        finally:
            self.busy = False

    def _obey(self, line: str, interrupted: threading.Event) -> Iterator[EngineEvent]:
        verb, _, rest = line.partition(" ")
        if verb == "say":
            yield Started(11, 0, 7)
            yield Prefill(11, 11)
            for number in range(int(rest)):
                yield Pass(2, 1, 1, 1, "cursor", number + 1, 0.5)
                yield Text(f"text {number}\n", (Span(7 + len(str(number)), Provenance.COPIED, number + 1),))
        elif verb == "wait":
            self.waiting.set()
            yield Prefill(0, 11)
            assert interrupted.wait(PATIENCE_S)
        elif verb == "fail":
            raise error_from_json({"code": rest, "message": f"A failure of kind {rest}."})
        elif verb == "fault":
            raise ZeroDivisionError(" ".join(["source", "text"]))  # not as one word: tracebacks show this line
        elif verb == "print":
            os.write(1, b"a stray line\n")
        elif verb == "end":
            os._exit(int(rest))
        elif verb == "kill":
            os.kill(os.getpid(), int(rest))
        elif verb == "deaf":
            yield Prefill(0, 11)
            threading.Event().wait(PATIENCE_S)
        else:
            raise AssertionError(f"no such order: {line}")


def main() -> None:
    """`python obedient_engine.py PARENT`: the process of a ChildClient."""
    from app.clients.engine_process import run_process

    run_process(lambda packed: (ObedientEngine(), "obedient"), int(sys.argv[1]))  # type: ignore[arg-type, return-value]


if __name__ == "__main__":
    main()
