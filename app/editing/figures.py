"""The figures of a run while it goes on, and where in the file the drafts held and where they did not.

Takes the engine's events one by one, with the clock passed in; knows nothing of terminals. Invariant: what the engine
does not say stays None, and a snapshot never changes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from editor_engine.events import DRAFT_MODEL, EngineEvent, Pass, Prefill, Provenance, Started, Text

RECENT_PASSES = 120
"""Passes kept for the sparkline."""


@dataclass(frozen=True)
class RunFigures:
    """One moment of a run."""

    prefill_done: int = 0
    prefill_total: int = 0
    """Prompt tokens to read; 0 before the engine has said it."""
    tokens: int = 0
    """Output tokens so far."""
    passes: int = 0
    drafted: int = 0
    accepted: int = 0
    decode_s: float = 0.0
    """Time in passes and in drafting."""
    by_model: tuple[int, int] | None = None
    """(drafted, accepted) tokens of a draft model; None before it drafted."""
    elapsed_s: float = 0.0
    """Since the run began."""
    characters: int = 0
    """Output characters so far."""
    copied_characters: int | None = None
    """Those of them that were copied from the file; None where the engine does not say."""
    source_line: int | None = None
    """Line of the user's file where the last draft was copied from."""
    emitted: tuple[int, ...] = ()
    """Tokens of each of the newest passes, oldest first."""

    @property
    def tok_s(self) -> float | None:
        """Output tokens over time in passes and in drafting."""
        return self.tokens / self.decode_s if self.decode_s else None

    @property
    def reading_tok_s(self) -> float | None:
        """Prompt tokens read over the time since the run began."""
        return self.prefill_done / self.elapsed_s if self.prefill_done and self.elapsed_s else None

    @property
    def acceptance(self) -> float | None:
        """Accepted over drafted tokens."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def copied_share(self) -> float | None:
        """Copied over all output characters."""
        if self.copied_characters is None or not self.characters:
            return None
        return self.copied_characters / self.characters


@dataclass(frozen=True)
class LineAcceptance:
    """How drafting went on one source line."""

    copied: int = 0
    """Characters of the output copied from it."""
    rejected: int = 0
    """Passes in which a draft from this line was not taken to its end."""


def _by_model(had: tuple[int, int] | None, event: Pass) -> tuple[int, int] | None:
    if event.drafter != DRAFT_MODEL:
        return had
    drafted, accepted = had or (0, 0)
    return drafted + event.drafted, accepted + event.accepted


class FigureKeeper:
    """Adds up the events of one run."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._figures = RunFigures()
        self._emitted: list[int] = []
        self._lines: dict[int, LineAcceptance] = {}

    def take(self, event: EngineEvent) -> None:
        """Count one event."""
        had = self._figures
        if isinstance(event, Started):
            self._figures = replace(had, prefill_total=event.prompt_tokens - (event.cached_tokens or 0))
        elif isinstance(event, Prefill):
            self._figures = replace(had, prefill_done=event.done, prefill_total=event.total)
        elif isinstance(event, Pass):
            self._take_pass(event)
        elif isinstance(event, Text):
            self._take_text(event)

    def figures(self) -> RunFigures:
        """The figures of this moment."""
        return replace(self._figures, elapsed_s=self._clock() - self._began, emitted=tuple(self._emitted))

    def lines(self) -> dict[int, LineAcceptance]:
        """How drafting went so far, by 1-based line of the user's file; lines without drafts are missing."""
        return dict(self._lines)

    def _take_pass(self, event: Pass) -> None:
        had = self._figures
        self._figures = replace(
            had,
            tokens=had.tokens + event.emitted,
            passes=had.passes + 1,
            drafted=had.drafted + event.drafted,
            accepted=had.accepted + event.accepted,
            decode_s=had.decode_s + (event.ms + event.draft_ms) / 1000,
            by_model=_by_model(had.by_model, event),
            source_line=event.source_line or had.source_line,
        )
        self._emitted = [*self._emitted[1 - RECENT_PASSES :], event.emitted]
        if event.source_line is not None and event.accepted < event.drafted:
            self._add(event.source_line, rejected=1)

    def _take_text(self, event: Text) -> None:
        had = self._figures
        copied = had.copied_characters
        for span in event.spans:
            if span.provenance is None:
                continue
            drawn = span.provenance in (Provenance.COPIED, Provenance.SUBSTITUTED)
            copied = (copied or 0) + (span.chars if drawn else 0)
            if drawn and span.source_line is not None:
                self._add(span.source_line, copied=span.chars)
        self._figures = replace(had, characters=had.characters + len(event.text), copied_characters=copied)

    def _add(self, line: int, copied: int = 0, rejected: int = 0) -> None:
        had = self._lines.get(line, LineAcceptance())
        self._lines[line] = LineAcceptance(had.copied + copied, had.rejected + rejected)
