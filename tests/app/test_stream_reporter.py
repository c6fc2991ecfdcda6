"""`--stream`: whole lines, the same text with and without colour, nothing a terminal would obey."""

import io
import re
from typing import cast

import click
import pytest

from app.editing.pipeline import EditPlan
from app.reporter import TalkReporter
from app.stream_reporter import StreamReporter
from editor_engine.events import Finished, FinishReason, Pass, Provenance, Span, Stats, Text

PLAN = cast(EditPlan, None)  # only `Pass` events with a source line look at the plan


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def stats(drafted: int, accepted: int) -> Stats:
    return Stats(10, 0, 20, 0.1, 50.0, 20.0, 2.0, 9, drafted, accepted)


TEXTS = [
    Text("def a", (Span(3, Provenance.COPIED, 1), Span(2, Provenance.GENERATED, None))),
    Text("\n\n  x\x1b[31m", (Span(2, Provenance.AGREED, 2), Span(8, Provenance.DRAFTED, 3))),
    Text("\nend", (Span(4, Provenance.SUBSTITUTED, 4),)),
]


LIVE_LINE = re.compile(r"\r\x1b\[K(writing \d+ characters)?")
"""The status line, and its removal."""


def streamed(stream: io.StringIO) -> str:
    reporter = StreamReporter(stream)
    for text in TEXTS:
        reporter.progress(PLAN, text)
    reporter.progress(PLAN, Finished(FinishReason.STOP, (1, 2), stats(0, 0)))
    return LIVE_LINE.sub("", stream.getvalue())


def test_plain_text_off_a_terminal() -> None:
    assert streamed(io.StringIO()) == "def a\n\n  x\\x1b[31m\nend\n"


def test_colour_changes_nothing_but_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = streamed(Terminal())
    assert click.unstyle(shown) == streamed(io.StringIO())
    assert click.style("def", dim=True) in shown
    assert click.style(" a", fg="green", bold=True) in shown


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert streamed(Terminal()) == streamed(io.StringIO())


@pytest.mark.parametrize(("accepted", "said"), [(4, True), (5, False), (10, False)])
def test_low_acceptance_is_told_with_its_cost(accepted: int, said: bool) -> None:
    stream = io.StringIO()
    reporter = TalkReporter(stream)
    reporter.progress(PLAN, Pass(11, 10, accepted, accepted + 1, "cursor", None, 1100.0))
    reporter.replied(stats(10, accepted))
    assert ("--no-draft" in stream.getvalue()) == said
    if said:
        assert "Only 40%" in stream.getvalue()
        assert "0.6 of 1.1 s" in stream.getvalue()
