"""Rules files: the first pattern that fits, or a refusal that says what is wrong."""

from pathlib import Path

import pytest

from app.errors import SettingsError
from app.watch.rules import StandingRules, read_rules


def test_the_first_pattern_that_fits_counts(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('"/tests/**" = "Test."\n"*.py" = "Type."\n"src/[id]" = "Brackets."\n')
    read = read_rules(str(rules), "Else.")
    asked = {name: read.instruction(name) for name in ("tests/a.py", "src/a.py", "a.txt", "src/i")}
    assert asked == {"tests/a.py": "Test.", "src/a.py": "Type.", "a.txt": "Else.", "src/i": "Brackets."}
    assert read_rules(str(rules)).instruction("a.txt") is None
    assert StandingRules("All.").instruction("any") == "All."


@pytest.mark.parametrize(
    "text", ["", "x", '"*.py" = 1', '"*.py" = " "', '"!" = "x"', "[a]\nb = 'c'", '"*.py" = "a"\n"*.py" = "b"', "\xff"]
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError, match=r"rules\.toml"):
        read_rules(str(rules))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        read_rules(str(tmp_path / "none.toml"))
