"""README says what is there: every source file with its job, every command, every make target it names."""

import re

from app.cli import COMMANDS
from tests.support.readme_tree import ROOT, entries, with_tree


def test_the_tree_is_that_of_the_sources() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_tree(readme) == readme, "python -m tests.support.readme_tree brings README up to date"


def test_every_source_file_says_its_job() -> None:
    assert [path for path, words in entries() if len(words) < 15] == []


def test_commands_and_targets_are_named() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE))
    assert {target for target in re.findall(r"(?m)(?:^|`)make ([a-z-]+)", readme)} <= targets
    assert all(f"redraft {name}" in readme or f"`{name}`" in readme for name in COMMANDS)
