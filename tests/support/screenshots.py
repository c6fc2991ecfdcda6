"""`python -m tests.support.screenshots`: the pictures of README, made from the scripted engine.

Knows where they go. Invariant: as `tests.support.scenes`.
"""

import os
import tempfile
from pathlib import Path

from tests.support.scenes import SCENES, picture

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
SIZE = (120, 36)


def main() -> None:
    """Write them all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for scene in SCENES:
        with tempfile.TemporaryDirectory() as scratch:
            for kind in ("CONFIG", "STATE", "DATA", "CACHE"):  # nothing of the user's may be in a picture
                os.environ[f"XDG_{kind}_HOME"] = scratch
            os.chdir(scratch)
            path = FOLDER / f"{scene.name}.svg"
            path.write_text(picture(scene, Path(scratch), SIZE), "utf-8")
            print(path)
            os.chdir(FOLDER)


if __name__ == "__main__":
    main()
