"""The reply as it grows: emitted ids, the text that is certain, and the one place that says it has ended.

Shared by the speculative loop and its plain twin, so both stop at the same token. Knows nothing of drafts or passes.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence

from editor_engine.decode.stop_text import StopText
from editor_engine.decode.stopping import RepetitionGuard, ReplyEnd
from editor_engine.draft.drafter import Origin
from editor_engine.events import FinishReason, Span, Text
from editor_engine.text.detokeniser import Detokeniser


def source_line(source_index: int | None, source_lines: Sequence[int]) -> int | None:
    """The file's line of a source token; None off the source. Drafters are not trusted to stay inside it."""
    if source_index is None or not 0 <= source_index < len(source_lines):
        return None
    return source_lines[source_index]


class Reply:
    """A `TokenSink`: takes tokens one by one, gives `Text` events for what is certain."""

    def __init__(
        self,
        detokeniser: Detokeniser,
        end: ReplyEnd,
        guard: RepetitionGuard,
        stop_ids: Collection[int],
        max_tokens: int,
        stop_texts: Sequence[str] = (),
    ) -> None:
        self.ids: list[int] = []
        """Every emitted token, stop token and dropped lines among them."""
        self._detokeniser = detokeniser
        self._end = end
        self._stop_text = StopText(stop_texts)
        self._guard = guard
        self._stop_ids = frozenset(stop_ids)
        self._max_tokens = max_tokens
        self._released: list[str] = []
        self._sizes: deque[int] = deque()  # characters of each token not yet given an origin
        self._spans: deque[Span] = deque()  # of text fed and not yet released

    @property
    def finish_reason(self) -> FinishReason:
        """Why the reply ended; LENGTH where it was never to begin (`max_tokens` 0)."""
        return self._end.reason or FinishReason.LENGTH

    def wants_more(self) -> bool:
        return self._end.reason is None

    @property
    def room(self) -> int:
        return self._max_tokens - len(self.ids)

    def push(self, token: int) -> None:
        self.ids.append(token)
        if token in self._stop_ids:
            self._feed(self._detokeniser.finish(), FinishReason.STOP)
            return
        text = self._detokeniser.feed(token)
        reason: FinishReason | None = None
        if self._guard.feed(token):
            reason = FinishReason.REPETITION
        elif len(self.ids) >= self._max_tokens:
            reason = FinishReason.LENGTH
        if reason is not None:
            text += self._detokeniser.finish()
        self._feed(text, reason)

    def _feed(self, text: str, reason: FinishReason | None) -> None:
        self._sizes.append(len(text))
        text = self._stop_text.feed(text)
        if self._stop_text.found:
            reason = FinishReason.STOP_TEXT
        elif reason is not None:
            text += self._stop_text.finish()
        self._released.append(self._end.feed(text))
        if reason is not None and self._end.reason is None:
            self._released.append(self._end.finish(reason))

    def cancel(self) -> None:
        """End the reply because its consumer asked for it."""
        if self.wants_more():
            self._released.append(self._end.feed(self._stop_text.finish()))
        if self.wants_more():  # what was held back may have been the stop line
            self._released.append(self._end.finish(FinishReason.CANCELLED))

    def take_text(self, origins: Sequence[Origin], source_lines: Sequence[int]) -> Iterator[Text]:
        """At most one event: the text released since the last call; `origins` are of the tokens pushed since then.

        `source_lines` maps a source token to its 1-based line in the user's file.
        """
        for origin in origins:
            line = source_line(origin.source_index, source_lines)
            self._spans.append(Span(self._sizes.popleft(), origin.provenance, line))
        text, self._released = "".join(self._released), []
        if text:
            yield Text(text, tuple(self._take_spans(len(text))))

    def _take_spans(self, chars: int) -> list[Span]:
        taken: list[Span] = []
        while chars and self._spans:
            span = self._spans.popleft()
            if span.chars > chars:
                self._spans.appendleft(Span(span.chars - chars, span.provenance, span.source_line))
                span = Span(chars, span.provenance, span.source_line)
            chars -= span.chars
            if span.chars:
                taken.append(span)
        return taken
