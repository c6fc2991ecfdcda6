"""Which engine serves: the one named, else one that runs already and is just the right one, else one of our own.

    > this process, or a child of it

Knows no engine. Invariant: a running server is taken only where its output is what an engine of this process would say:
same program version, same arithmetic, same model file.
"""

from collections.abc import Callable

from app.clients.child import ChildClient
from app.clients.in_process import native_client
from app.engine_client import EngineClient
from app.settings import Settings


def choose(
    settings: Settings,
    *,
    model: str | None = None,
    threads: int | None = None,
    child: bool = False,
    on_note: Callable[[str], None] = lambda sentence: None,
) -> EngineClient:
    """The client to use; nothing is loaded yet.

    Args:
        settings: what holds where an option was not given.
        model: `--model`: catalogue id or path of a GGUF file.
        threads: `--threads`.
        child: for front ends that must keep painting: the engine gets a process of its own.
        on_note: hears, on another thread, how a child's loading goes and why it was started again.
    """
    model = model or settings.model
    threads = settings.threads if threads is None else threads
    if child:
        return ChildClient(model, threads, on_note=on_note)
    return native_client(model, threads)
