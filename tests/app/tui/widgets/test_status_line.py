"""The status line: always state, speed and badge; the rest as room allows, and unknown is not zero."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from app.editing.figures import LineAcceptance, RunFigures
from app.engine_client import EngineDescription
from app.tui.widgets.acceptance_gutter import gutter_mark
from app.tui.widgets.sparkline import sparkline
from app.tui.widgets.status_line import Status, status_text

ENGINE = EngineDescription("qwen2.5-coder-1.5b", "0" * 64, "cpu", 4, "exact", "strict", 32768)
FIGURES = RunFigures(
    tokens=300, passes=40, drafted=280, accepted=250, decode_s=4.0, elapsed_s=6.5, characters=100,
    copied_characters=88, emitted=(1, 8, 16, 2),
)  # fmt: skip
FULL = Status("writing", ENGINE, FIGURES, "40%, 3 s left", (1, 4))


def test_everything_is_there_where_there_is_room() -> None:
    assert status_text(FULL, 200) == (
        "writing  40%, 3 s left  75.0 tok/s  accepted 89%  copied 88%  40 passes  6.5 s  1 of 4 decided  "
        "▁▄█▁  qwen2.5-coder-1.5b  cpu  exact"
    )


def test_what_a_draft_model_drafted_is_shown_when_it_did() -> None:
    drafting = replace(FULL, figures=replace(FIGURES, by_model=(30, 24)))
    assert "accepted 89%  draft model 24/30  copied 88%" in status_text(drafting, 200)


def test_unknown_is_left_out_or_a_dash() -> None:
    assert status_text(Status(), 80) == "starting  - tok/s"
    other = EngineDescription("gpt", None, None, None, "not guaranteed", "strict", None)
    assert status_text(Status("ready", other), 80) == "ready  - tok/s  gpt  not guaranteed"


@settings(derandomize=True, deadline=None)
@given(width=st.integers(1, 200))
def test_state_speed_and_badge_stay_longest(width: int) -> None:
    text = status_text(FULL, width)
    pieces = text.split("  ")
    assert pieces[0] == "writing"
    if width >= 27:
        assert cell_len(text) <= width
        assert "75.0 tok/s" in pieces and pieces[-1] == "exact"
    if width >= 80:
        assert "accepted 89%" in pieces and "1 of 4 decided" in pieces and "40%, 3 s left" in pieces


def test_a_model_id_is_text() -> None:
    engine = EngineDescription("[b]\x1b[31m", None, None, None, "exact", "strict", None)
    assert "[b]\\x1b[31m" in status_text(Status("ready", engine), 80)


@pytest.mark.parametrize(
    ("emitted", "width", "bars"),
    [
        ((), 5, ""),
        ((1, 1), 5, "▁▁"),
        ((1, 2, 3), 5, "▁▄█"),
        ((9, 1, 2, 9), 2, "▁█"),
        ((1, 9), 0, ""),
        ((0, 5), 5, "▁█"),
    ],
)
def test_sparkline(emitted: tuple[int, ...], width: int, bars: str) -> None:
    assert sparkline(emitted, width) == bars


@settings(derandomize=True, deadline=None)
@given(emitted=st.lists(st.integers(0, 300), max_size=40), width=st.integers(0, 50))
def test_a_longer_pass_never_has_a_lower_bar(emitted: list[int], width: int) -> None:
    bars = sparkline(emitted, width)
    assert len(bars) == min(len(emitted), width)
    shown = emitted[len(emitted) - len(bars) :]
    for one, left in zip(bars, shown, strict=True):
        for other, right in zip(bars, shown, strict=True):
            assert left > right or one <= other


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        (None, " "),
        (LineAcceptance(0, 0), "▁"),
        (LineAcceptance(5, 0), "▄"),
        (LineAcceptance(10, 0), "█"),
        (LineAcceptance(90, 0), "█"),
        (LineAcceptance(10, 1), "✗"),
    ],
)
def test_gutter_marks(line: LineAcceptance | None, mark: str) -> None:
    assert gutter_mark(line, 10) == mark
    assert gutter_mark(line, 0) in ("▁", "█", "✗", " ")
