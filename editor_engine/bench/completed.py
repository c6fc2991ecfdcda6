"""One completion of which only the end is wanted: its token ids and its figures.

Knows the engine's events and nothing of what is measured. Invariant: what comes back is the engine's own last word.
"""

from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.events import Finished
from editor_engine.requests import CompletionRequest


def completed(engine: Engine, request: CompletionRequest) -> Finished:
    """Decode `request` to its end. Raises what `Engine.complete` raises."""
    *_, last = engine.complete(request)
    if not isinstance(last, Finished):
        raise RequestError("The engine ended without a result.")
    return last
