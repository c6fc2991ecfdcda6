"""The prompt: fences no source can break, regions, and the budget's arithmetic."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.language import TEXT, detect_language
from app.editing.prompt import Budget, ContextFile, EditPrompt, build_prompt, fence_for
from app.editing.region import Anchor, Region
from app.errors import ExitCode, FileTooLongError

PYTHON = detect_language("a.py")
MARKDOWN = detect_language("a.md")


def user(prompt: EditPrompt) -> str:
    return prompt.messages[-1].content


def test_the_file_comes_first_then_the_instruction() -> None:
    prompt = build_prompt(["a = 1", "b = 2"], "Swap them.", PYTHON)
    assert [message.role for message in prompt.messages] == ["system", "user"]
    assert user(prompt).startswith("```python\na = 1\nb = 2\n```\n")
    assert user(prompt).index("b = 2") < user(prompt).index("Swap them.")
    assert prompt.prefill == "```python\n"
    assert prompt.stop_line == "```"
    assert (prompt.source, prompt.source_line) == ("a = 1\nb = 2\n", 1)


def test_the_request_carries_all_of_it() -> None:
    prompt = build_prompt(["a", "", "b", "c"], "x", TEXT, Region(1, 1))
    request = prompt.request(7, draft=False)
    assert (request.max_tokens, request.draft) == (7, False)
    assert (request.messages, request.prefill, request.source) == (prompt.messages, prompt.prefill, prompt.source)
    assert (request.stop_line, request.anchor, request.anchor_blank_lines) == ("````", ("b",), 1)


def test_trailing_blank_lines_of_the_source_are_shown() -> None:
    assert user(build_prompt(["a", ""], "x", PYTHON)).startswith("```python\na\n\n```\n")


def test_context_files_come_before_the_file() -> None:
    context = [ContextFile("lib/[x].js", "let a;\n", detect_language("x.js")), ContextFile("b\n.md", "```\n", MARKDOWN)]
    text = user(build_prompt(["main()"], "Call it.", PYTHON, context=context))
    assert text.index("let a;") < text.index("main()")
    assert "lib/[x].js\n```javascript\nlet a;\n```\n" in text
    assert "'b\\n.md'\n````markdown\n```\n````\n" in text


@settings(derandomize=True, deadline=None)
@given(st.lists(st.text(alphabet="`a \n", max_size=12), max_size=4))
def test_a_fence_is_in_none_of_its_texts(texts: list[str]) -> None:
    assert all(fence_for(texts) not in text for text in texts)
    assert len(fence_for(texts)) >= 3


def test_prose_has_room_for_a_code_block_that_the_edit_adds() -> None:
    assert build_prompt(["# Title"], "Add an example.", MARKDOWN).stop_line == "````"
    assert build_prompt(["# Title"], "Fix the ```` block.", MARKDOWN).stop_line == "`````"


def test_a_region_opens_the_reply_with_the_lines_before_it() -> None:
    lines = ["def f():", "    a()", "    b()", "", "def g():", "    c()"]
    prompt = build_prompt(lines, "x", PYTHON, Region(3, 3))
    assert prompt.prefill == "```python\ndef f():\n    a()\n"
    assert prompt.locked == ("def f():", "    a()")
    assert (prompt.source, prompt.source_line) == ("    b()\n\ndef g():\n", 3)
    assert prompt.anchor == Anchor(("def g():",), 1)


def test_a_region_is_named_by_its_first_and_last_text() -> None:
    lines = ["def f():", "    a()", "", "def g():", "    $b()", ""]
    text = user(build_prompt(lines, "Delete this function.", PYTHON, Region(4, 6)))
    assert 'from line 4, "def g():", to line 6, "$b()"' in text
    assert text.startswith("```python\ndef f():")
    assert "Delete this function." in text
    # A region of blank lines has no text to be named by.
    assert 'line 3, ""' in user(build_prompt(lines, "x", PYTHON, Region(3, 3)))


def test_a_region_without_an_anchor_follows_the_file_to_its_end() -> None:
    prompt = build_prompt(["{", "a", "}", "{", "b", "}"], "x", TEXT, Region(5, 5))
    assert prompt.anchor == Anchor((), 0)
    assert prompt.source == "b\n}\n"


def test_the_budget_counts() -> None:
    small = Budget(prompt=1000, expected=100, context=1356)
    assert (small.headroom, small.max_tokens, small.needed) == (256, 356, 1356)
    small.check(is_region=False)
    large = Budget(prompt=1000, expected=1001, context=2500)
    assert (large.headroom, large.needed) == (500, 2501)
    with pytest.raises(FileTooLongError) as caught:
        large.check(is_region=False)
    assert caught.value.exit_code is ExitCode.FILE
    for part in ("1000", "1001", "500", "2501", "2500", "--lines"):
        assert part in str(caught.value)
    with pytest.raises(FileTooLongError, match="A part of it would not fit either"):
        Budget(prompt=2300, expected=2200, context=2500).check(is_region=False)
    with pytest.raises(FileTooLongError) as caught:
        large.check(is_region=True)
    assert "--lines" not in str(caught.value) and "All of it is in the prompt" in str(caught.value)
