"""Replies: taken whole, or refused by name."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.extract import extract_fenced, extract_reply
from app.editing.language import TEXT, Language, detect_language
from app.editing.prompt import build_prompt
from app.editing.region import Region
from app.errors import (
    AppError,
    ExitCode,
    InterruptedByUserError,
    ReplyCutError,
    ReplyEmptyError,
    ReplyEndlessError,
    ReplyNotCodeError,
)
from editor_engine.events import FinishReason

STOP, STOP_LINE, ANCHOR = FinishReason.STOP, FinishReason.STOP_LINE, FinishReason.ANCHOR
PYTHON = detect_language("a.py")
MARKDOWN = detect_language("a.md")


def reply(
    text: str,
    source: list[str],
    reason: FinishReason = STOP_LINE,
    region: Region | None = None,
    language: Language = PYTHON,
) -> list[str]:
    return extract_reply(text, reason, build_prompt(source, "x", language, region), source, language)


@pytest.mark.parametrize(
    ("reason", "error", "exit_code"),
    [
        (FinishReason.LENGTH, ReplyCutError, ExitCode.REFUSED),
        (FinishReason.REPETITION, ReplyEndlessError, ExitCode.REFUSED),
        (FinishReason.CANCELLED, InterruptedByUserError, ExitCode.INTERRUPTED),
    ],
)
def test_an_unfinished_reply_is_no_file(reason: FinishReason, error: type[AppError], exit_code: ExitCode) -> None:
    with pytest.raises(error) as caught:
        reply("a = 1\n", ["a = 1"], reason)
    assert caught.value.exit_code is exit_code
    with pytest.raises(error):
        extract_fenced("```\na = 1\n```\n", reason, ["a = 1"], PYTHON)


@pytest.mark.parametrize("text", ["", "\n", "  \n\t\n"])
@pytest.mark.parametrize("reason", [STOP, STOP_LINE])
def test_an_empty_reply_is_no_file(text: str, reason: FinishReason) -> None:
    with pytest.raises(ReplyEmptyError):
        reply(text, ["a = 1", "b = 2"], reason)
    with pytest.raises(ReplyEmptyError):
        reply(text, ["a = 1", "b = 2"], reason, Region(1, 1))


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8), min_size=1))
def test_every_character_but_the_newline_is_data(lines: list[str]) -> None:
    source = ["keep", *lines]
    assert reply("".join(f"{line}\n" for line in source), source, language=TEXT) == source


def test_the_last_line_may_lack_its_newline() -> None:
    assert reply("a = 1\nb = 3", ["a = 1", "b = 2"], STOP) == ["a = 1", "b = 3"]


def test_blank_lines_at_either_end_are_data() -> None:
    assert reply("\na = 1\n\n", ["a = 1"]) == ["", "a = 1", ""]


def test_a_repeated_opening_is_dropped() -> None:
    assert reply("```python\na = 2\n", ["a = 1"]) == ["a = 2"]
    # In a file that starts so it is data: our own fence is longer there.
    source = ["```markdown", "a", "```"]
    assert reply("```markdown\nb\n```\n", source, language=MARKDOWN) == ["```markdown", "b", "```"]


def test_a_closing_fence_before_the_stop_token_is_dropped() -> None:
    assert reply("a = 2\n```", ["a = 1"], STOP) == ["a = 2"]


def test_three_backticks_close_a_longer_fence_where_the_source_does_not_end_so() -> None:
    source = ["# Title", "```", "code", "```", "text"]
    assert reply("# New\n```\ncode\n```\ntext\n```", source, STOP, language=MARKDOWN) == ["# New", *source[1:]]
    source = ["# Title", "```", "code", "```"]
    assert reply("# New\n```\ncode\n```\n", source, STOP, language=MARKDOWN) == ["# New", *source[1:]]


def test_inner_fences_and_our_markers_are_data() -> None:
    source = ["# Title", "", "````", "```python", "x", "```", "````", "", "end"]
    assert reply("".join(f"{line}\n" for line in source), source, language=MARKDOWN) == source


@pytest.mark.parametrize("text", ["I'm sorry, I cannot help with that.", "Sure! Here is what to change:\n\nnothing"])
def test_prose_is_no_code(text: str) -> None:
    source = ["import os", "", "def f():", "    return os.name"]
    with pytest.raises(ReplyNotCodeError):
        reply(text, source, STOP)
    with pytest.raises(ReplyNotCodeError):
        reply(text, ["int main(void)", "{", "    return 0;", "}"], STOP, language=detect_language("a.c"))


def test_a_rewrite_from_scratch_is_code() -> None:
    source = ["def f():", "    a = 1", "    return a"]
    assert reply("f = lambda: 1\n", source) == ["f = lambda: 1"]
    source = ["int main(void) {", "    return 0;", "}"]
    text = "int main(int argc, char **argv)\n{\n  return argc;\n}\n"
    assert len(reply(text, source, language=detect_language("a.c"))) == 4


# --- regions ----------------------------------------------------------------------------------------------------------

BRACES = ["a {", "  one", "}", "b {", "  two", "}"]


def test_a_region_that_ended_at_its_anchor() -> None:
    source = ["def f():", "    a()", "", "def g():", "    pass"]
    assert reply("    b()\n    c()\n", source, ANCHOR, Region(2, 2)) == [
        "def f():",
        "    b()",
        "    c()",
        "",
        "def g():",
        "    pass",
    ]


def test_a_region_may_be_deleted_up_to_its_anchor() -> None:
    assert reply("", ["a", "b", "c"], ANCHOR, Region(2, 2), TEXT) == ["a", "c"]


@pytest.mark.parametrize("text", ["  2\n}\n", "  2\n}", "  2\n\n}\n\n", "  2\n"])
def test_without_an_anchor_the_rest_of_the_file_is_dropped(text: str) -> None:
    expected = [*BRACES[:4], "  2", *([""] if "\n\n}" in text else []), "}"]
    assert reply(text, BRACES, STOP_LINE, Region(5, 5), TEXT) == expected


def test_blank_lines_of_the_file_before_its_tail_stay_outside() -> None:
    source = ["x", "}", "x", "", "}", ""]
    assert reply("y\n\n\n}\n\n", source, STOP_LINE, Region(3, 3), TEXT) == ["x", "}", "y", "", "", "}", ""]


def test_a_region_at_the_end_of_the_file_drops_the_files_own_blank_lines() -> None:
    assert reply("b\n\n", ["a", "x", "", ""], STOP_LINE, Region(2, 2), TEXT) == ["a", "b", "", ""]


# --- servers that cannot open a reply ---------------------------------------------------------------------------------

SOURCE = ["a = 1", "b = 2", "c = 3"]


@pytest.mark.parametrize(
    "text",
    [
        "```python\na = 1\nb = 2\nc = 4\n```",
        "Here it is:\n\n```\na = 1\nb = 2\nc = 4\n```\n\nI changed `c`.\n",
        "````py\na = 1\nb = 2\nc = 4\n````\n",
    ],
)
def test_one_outer_fence(text: str) -> None:
    assert extract_fenced(text, STOP, SOURCE, PYTHON) == ["a = 1", "b = 2", "c = 4"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a = 1\nb = 2\n", ReplyNotCodeError),
        ("```python\na = 1\nb = 2\n", ReplyCutError),
        ("```\n\n```\n", ReplyEmptyError),
        ("", ReplyEmptyError),
        ("```\na = 1\n```\nand\n```\nb = 2\n```\n", ReplyNotCodeError),
        ("```\nI would rather not.\n```\n", ReplyNotCodeError),
    ],
)
def test_a_malformed_reply_is_refused_whole(text: str, error: type[AppError]) -> None:
    with pytest.raises(error):
        extract_fenced(text, STOP, SOURCE, PYTHON)


def test_inner_fences_of_the_source_are_kept() -> None:
    source = ["# T", "```", "x", "```", "end"]
    body = "# U\n```\nx\n```\nend\n"
    assert extract_fenced(f"````markdown\n{body}````\n", STOP, source, MARKDOWN) == body.split("\n")[:-1]
    assert extract_fenced(f"```markdown\n{body}```\n", STOP, source, MARKDOWN) == body.split("\n")[:-1]
    with pytest.raises(ReplyNotCodeError):
        extract_fenced(f"```markdown\n{body}```\nDone!\n", STOP, source, MARKDOWN)
