"""Where the characters of each line of a reply came from.

Text events carry spans that run over line ends; here they are cut at them. Knows nothing of tokens, of what a line says
or of how it is shown. Invariant: the spans of a line cover its characters, line end left out, in order.
"""

from dataclasses import replace

from editor_engine.events import Span, Text


class LineOrigins:
    """Fed text events, in order; a line without spans is one whose origin is not known."""

    def __init__(self) -> None:
        self._lines: list[tuple[Span, ...]] = [()]

    def feed(self, text: Text) -> None:
        """Take the spans of more text."""
        at = 0
        for span in text.spans:
            pieces = text.text[at : at + span.chars].split("\n")
            at += span.chars
            for number, piece in enumerate(pieces):
                if number:
                    self._lines.append(())
                if piece:
                    self._lines[-1] = _joined(self._lines[-1], replace(span, chars=len(piece)))
        self.skip(text.text[at:])

    def skip(self, text: str) -> None:
        """Take text of unknown origin."""
        self._lines += [()] * text.count("\n")

    def drop_first(self) -> None:
        """Forget the first line, which is no part of the file."""
        del self._lines[0]

    def lines(self, count: int) -> tuple[tuple[Span, ...], ...]:
        """The spans of the first `count` lines."""
        known = tuple(self._lines[:count])
        return known + ((),) * (count - len(known))


def _joined(spans: tuple[Span, ...], span: Span) -> tuple[Span, ...]:
    last = spans[-1] if spans else None
    if last is not None and (last.provenance, last.source_line) == (span.provenance, span.source_line):
        return (*spans[:-1], replace(last, chars=last.chars + span.chars))
    return (*spans, span)
