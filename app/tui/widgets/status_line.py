"""One line that says what runs, how fast, how well drafting does, and how much is decided.

Draws what it is told. Invariant: the state, the speed and the badge are always there; what does not fit goes, the least
important first.
"""

from dataclasses import dataclass, field

from rich.text import Text
from textual.widget import Widget

from app.editing.figures import RunFigures
from app.engine_client import EngineDescription
from app.terminal_text import visible
from app.tui.widgets.sparkline import sparkline

_SPARK = 24
"""Passes of the sparkline."""


@dataclass(frozen=True)
class Status:
    """All that the line shows."""

    state: str = "starting"
    """One or two words."""
    engine: EngineDescription | None = None
    figures: RunFigures = field(default_factory=RunFigures)
    forecast: str = ""
    """What the next edit will take, or when this one is done; empty when unknown."""
    decided: tuple[int, int] | None = None
    """Hunks decided, and all of them; None without a review."""
    watch: str = ""
    """What watches do and how many proposals wait; empty without any."""


class StatusLine(Widget):
    """The line above the footer."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.status = Status()

    def show(self, status: Status) -> None:
        """Show this from now on."""
        if status != self.status:
            self.status = status
            self.refresh()

    def render(self) -> Text:
        return Text(status_text(self.status, self.size.width), no_wrap=True, overflow="crop", end="")


def status_text(status: Status, width: int) -> str:
    """The line, at most `width` cells of it."""
    pieces = [piece for piece in _pieces(status) if piece[1]]
    while len(pieces) > 1 and _length(pieces) > width:
        pieces.remove(max(pieces, key=lambda piece: piece[0]))
    return "  ".join(text for _, text in pieces)


def _length(pieces: list[tuple[int, str]]) -> int:
    return sum(Text(text).cell_len for _, text in pieces) + 2 * (len(pieces) - 1)


def _pieces(status: Status) -> list[tuple[int, str]]:
    """(how soon it may go, text), in the order shown."""
    engine, figures = status.engine, status.figures
    speed = figures.tok_s or figures.reading_tok_s
    return [
        (-1, status.state),
        (3, status.forecast),
        (1, "- tok/s" if speed is None else f"{speed:.1f} tok/s"),
        (4, "" if figures.acceptance is None else f"accepted {figures.acceptance:.0%}"),
        (6, "" if figures.by_model is None else "draft model {1}/{0}".format(*figures.by_model)),
        (5, "" if figures.copied_share is None else f"copied {figures.copied_share:.0%}"),
        (7, f"{figures.passes} passes" if figures.passes else ""),
        (6, f"{figures.elapsed_s:.1f} s" if figures.elapsed_s else ""),
        (2, "" if status.decided is None else f"{status.decided[0]} of {status.decided[1]} decided"),
        (4, visible(status.watch)),
        (10, sparkline(figures.emitted, _SPARK)),
        (8, "" if engine is None else visible(engine.model_id)),
        (9, "" if engine is None or engine.where is None else visible(engine.where)),
        (0, "" if engine is None else engine.exactness),
    ]
