"""`--stream`: the reply as it comes, coloured by where each token came from, above one status line.

A line is printed when it is whole, so that the status line below it never tears it. Knows provenance classes and
colours. Invariant: without colour (NO_COLOR, or no terminal) the text is the same, plain.
"""

from typing import TextIO

import click

from app.editing.pipeline import EditPlan, HunkReady
from app.reporter import TalkReporter
from app.terminal_text import takes_colour, visible
from editor_engine.events import EngineEvent, Finished, Provenance, Started, Text

_STYLES: dict[Provenance, dict[str, object]] = {
    Provenance.COPIED: {"dim": True},
    Provenance.SUBSTITUTED: {"fg": "cyan"},
    Provenance.DRAFTED: {"fg": "blue"},
    Provenance.AGREED: {},
    Provenance.GENERATED: {"fg": "green", "bold": True},
    Provenance.POLICY: {"fg": "magenta"},
}


class StreamReporter(TalkReporter):
    """Talk, and the reply's text, on stderr."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, verbose: bool = False) -> None:
        super().__init__(stream, quiet=quiet, verbose=verbose)
        self._colour = takes_colour(stream)
        self._line: list[str] = []

    def started(self, plan: EditPlan, event: Started, expected_s: float | None) -> None:
        super().started(plan, event, expected_s)
        if self._colour:
            self.print_line(" ".join(self._styled(kind.value, kind) for kind in Provenance))

    def progress(self, plan: EditPlan, event: EngineEvent | HunkReady) -> None:
        super().progress(plan, event)
        if isinstance(event, Text):
            self._print(event)
        elif isinstance(event, Finished) and self._line:
            self._end_line()

    def _print(self, event: Text) -> None:
        at = 0
        for span in event.spans:
            first, *others = event.text[at : at + span.chars].split("\n")
            at += span.chars
            self._line.append(self._styled(visible(first), span.provenance))
            for text in others:
                self._end_line()
                self._line.append(self._styled(visible(text), span.provenance))

    def _end_line(self) -> None:
        self.print_line("".join(self._line))
        self._line = []

    def _styled(self, text: str, provenance: Provenance | None) -> str:
        style = {} if provenance is None else _STYLES[provenance]
        return click.style(text, **style) if self._colour and style and text else text  # type: ignore[arg-type]
