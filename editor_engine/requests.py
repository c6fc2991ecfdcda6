"""What a caller asks of the engine: a frozen request and the flag that cancels it.

Light on purpose (no numpy, no C++): front ends import it at start-up.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """One chat message."""

    role: str
    """system, user or assistant."""
    content: str


@dataclass(frozen=True)
class CompletionRequest:
    """One completion. Text positions are characters, lengths are tokens."""

    messages: tuple[Message, ...]
    """The conversation, rendered by the model's own chat template."""
    max_tokens: int
    """Most output tokens; 0 only prefills."""
    prefill: str = ""
    """Opening of the reply: part of the prompt, never output, never parsed."""
    source: str = ""
    """Text the reply is expected to follow (LF newlines); drafts are copied from it. Empty: nothing to copy."""
    source_line: int = 1
    """1-based line number of the first line of `source` in the user's file."""
    stop_line: str | None = None
    """The first output line equal to it ends the reply and is dropped. None: only a stop token ends it."""
    anchor: tuple[str, ...] = ()
    """Non-blank lines that, emitted one after the other (blank lines between them do not count), end the reply; they
    are dropped. Empty: no anchor."""
    anchor_blank_lines: int = 0
    """At most so many blank lines right before the anchor are dropped with it."""
    stop: tuple[str, ...] = ()
    """The first of these texts to be emitted ends the reply, wherever it stands in a line; it is dropped with what its
    last token has after it. None of them is empty."""
    temperature: float = 0.0
    """0 is greedy; above 0 tokens are drawn, by a generator keyed by (seed, position)."""
    seed: int = 0
    """Of the draws; not negative."""
    score: bool = False
    """Report the mean log-likelihood of the output; costs a pass over the full logits of every token."""
    draft: bool = True
    """Draft from source, prompt and output, and verify many tokens in one pass. The output is the same either way."""


class CancelFlag:
    """Set from any thread to stop a request; interrupts the pass that is running.

    The engine connects the model's interrupt while a request runs, so a flag set before, during or after a pass is
    never lost, and after its request reaches no other. (There is no lock, which a signal handler might wait for in
    vain: a flag that is being set at the very moment its request ends may still interrupt the next one.)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._set = False
        self._interrupt: Callable[[], None] | None = None

    def set(self) -> None:
        """Ask the request to stop. Safe from any thread and from a signal handler's main thread; idempotent."""
        self._set = True
        interrupt = self._interrupt
        if interrupt is not None:
            interrupt()

    def is_set(self) -> bool:
        """True once `set` was called."""
        return self._set

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """While inside, `set` also calls `interrupt`, at once when the flag is set already."""
        with self._lock:
            self._interrupt = interrupt
            if self._set:
                interrupt()
            try:
                yield
            finally:
                self._interrupt = None
