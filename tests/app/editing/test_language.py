"""Languages from file names and first lines."""

import pytest

from app.editing.grammar import load_grammar
from app.editing.language import TEXT, detect_language

GRAMMARS = "python javascript go rust java bash css html json markdown sql toml xml yaml".split()


@pytest.mark.parametrize(
    ("filename", "first_line", "name", "fence"),
    [
        ("a/b/module.py", "", "python", "python"),
        ("[id]/page.tsx", "", "tsx", "tsx"),
        ("SHOUT.PY", "", "python", "python"),
        ("analysis.R", "", "r", "r"),
        ("start.S", "", "assembly", "asm"),
        ("Makefile", "", "makefile", "makefile"),
        ("CMakeLists.txt", "", "cmake", "cmake"),
        (".bashrc", "", "bash", "bash"),
        ("run", "#!/usr/bin/env python3", "python", "python"),
        ("run", "#!/usr/bin/env -S node --test", "javascript", "javascript"),
        ("run", "#! /bin/sh -e", "bash", "bash"),
        ("module.d", "", "d", "d"),
        ("notes.txt", "", "text", ""),
        ("LICENSE", "Permission is granted", "text", ""),
        ("data.unheard-of", "#!", "text", ""),
    ],
)
def test_detection(filename: str, first_line: str, name: str, fence: str) -> None:
    language = detect_language(filename, first_line)
    assert (language.name, language.fence) == (name, fence)


def test_the_name_wins_over_the_first_line() -> None:
    assert detect_language("a.rb", "#!/usr/bin/python").name == "ruby"


def test_unknown_is_text() -> None:
    assert detect_language("x") is TEXT


@pytest.mark.parametrize("name", GRAMMARS)
def test_every_grammar_that_the_table_names_loads(name: str) -> None:
    assert load_grammar(name) is not None


def test_a_grammar_that_is_not_there_is_none() -> None:
    assert load_grammar("no_such_language") is None
