"""How the terminal UI looks, byte for byte: three moments in every size and theme that must work.

`make snapshots` makes the pictures anew; look at each one that changed before it is committed.
"""

import difflib
import os
from pathlib import Path

import pytest

from tests.support.scenes import SCENES, Scene, picture, words

FOLDER = Path(__file__).with_name("snapshots")
LOOKS = [
    ((80, 24), "redraft-dark"),
    ((120, 40), "redraft-dark"),
    ((200, 50), "redraft-dark"),
    ((120, 40), "redraft-light"),
    ((120, 40), "ansi-dark"),
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
@pytest.mark.parametrize(("size", "theme"), LOOKS, ids=lambda value: value if isinstance(value, str) else str(value[0]))
def test_it_looks_as_it_did(
    scene: Scene, size: tuple[int, int], theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = FOLDER / f"{scene.name}-{size[0]}x{size[1]}-{theme}.svg"
    again = os.environ.get("UPDATE_SNAPSHOTS") == "1"
    monkeypatch.chdir(tmp_path)
    svg = picture(scene, tmp_path, size, theme)
    if again:
        FOLDER.mkdir(exist_ok=True)
        kept.write_text(svg, "utf-8")
        return
    assert kept.exists(), f"{kept} is not there; `make snapshots` makes it"
    before = kept.read_text("utf-8")
    if svg != before:
        changed = tmp_path / kept.name
        changed.write_text(svg, "utf-8")
        rows = difflib.unified_diff(
            words(before).splitlines(), words(svg).splitlines(), "before", "now", n=1, lineterm=""
        )
        said = "\n".join(rows) or "the words are the same; colours or styles are not"
        pytest.fail(f"{kept.name} looks different now ({changed}); `make snapshots` keeps it:\n{said}")
