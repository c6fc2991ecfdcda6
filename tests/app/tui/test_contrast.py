"""Every word on the screen can be read in every theme and with every number of colours, and without any.

What a theme promises of its colours is not what is painted: tints, dimming and the nearest of 256 come between.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem, ColorType
from rich.segment import Segment
from rich.style import Style

from tests.support.scenes import PROVENANCE, SCENES, Scene, seen
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive

STREAMING = SCENES[0]
WIDE = (120, 40)
LEAST = {None: 4.5, ColorSystem.EIGHT_BIT: 3.9}
"""Contrast as WCAG 2 has it, by how colours are sent: as they are, or as the nearest of 256."""


def painted(session: Session) -> list[Segment]:
    """What is on the screen, as it is sent to a terminal of all colours."""
    return [segment for strip in session.app.screen._compositor.render_strips() for segment in strip]


def words(segments: list[Segment]) -> Iterator[tuple[str, Style]]:
    """Those with a letter or a digit; frames and bars are not read."""
    for segment in segments:
        if any(char.isalnum() for char in segment.text):
            assert segment.style is not None
            yield segment.text, segment.style


def contrast(one: Color, other: Color) -> float:
    """1 to 21."""

    def luminance(color: Color) -> float:
        parts = [part / 255 for part in color.get_truecolor()]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["redraft-dark", "redraft-light"])
@pytest.mark.parametrize("scene", [STREAMING, PROVENANCE], ids=lambda scene: scene.name)
def test_every_word_can_be_read(scene: Scene, theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = list(words(seen(scene, tmp_path, WIDE, theme, painted)))
    assert len(found) > 100
    for text, style in found:
        assert style.color is not None and style.bgcolor is not None and not style.dim, (text, style)
        for system, least in LEAST.items():
            colours = [colour.downgrade(system) if system else colour for colour in (style.color, style.bgcolor)]
            assert contrast(*colours) >= least, (text, str(style), system)


@pytest.mark.parametrize("theme", ["ansi-dark", "ansi-light"])
def test_with_few_colours_they_are_the_terminals_own(
    theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, style in words(seen(PROVENANCE, tmp_path, WIDE, theme, painted)):
        for colour in (style.color, style.bgcolor):
            assert colour is None or colour.type in (ColorType.DEFAULT, ColorType.STANDARD), (text, style)
        assert style.color is None or style.color.is_default or style.color != style.bgcolor, (text, style)


def looks(session: Session, beginning: str) -> set[tuple[bool, ...]]:
    """How text that begins so is painted where there are no colours: bold, underlined, reversed."""
    found = set()
    for text, style in words(painted(session)):
        assert all(colour is None or colour.is_default for colour in (style.color, style.bgcolor)), (text, style)
        if text.strip().startswith(beginning):
            found.add((bool(style.bold), bool(style.underline), bool(style.reverse)))
    assert found, session.shown()
    return found


def test_without_colours_what_is_marked_looks_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR: no colour is sent at all, not even greys, which may be black on black."""
    monkeypatch.setenv("NO_COLOR", "1")
    path = tmp_path / "a.py"
    path.write_text("a = 1\nb = 2\n")

    async def steps(session: Session) -> None:
        assert session.shown().count("┏") == 1  # the pane that has the keys
        await session.ask("Do.")
        assert session.shown().count("┏") == 1
        assert looks(session, "? hunk 1 of 1") == {(True, False, True)}
        assert looks(session, "1 of 1, 1 undecided") == {(False, False, False)}
        await session.press("ctrl+p")
        assert looks(session, "Down").isdisjoint(looks(session, "Next"))
        await session.press("escape")
        await session.press("f3", "down")
        assert (False, False, True) in looks(session, "threads") - looks(session, "load.draft_rule")
        await session.press("escape")
        await session.press("ctrl+q")
        assert looks(session, "Stay").isdisjoint(looks(session, "Keep and quit"))

    drive(ScriptedClient(fenced("a = 3\nb = 2\n")), steps, file=path, theme="ansi-dark")
