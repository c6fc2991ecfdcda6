"""The review in plain lines: each letter does what it says, and the end of the input decides nothing."""

import io

import pytest

from app.editing.checks import run_checks
from app.editing.diff import make_hunks
from app.editing.document import open_bytes
from app.editing.language import language_named
from app.editing.result import make_result
from app.editing.review import Decision, Review
from app.errors import UsageError
from app.plain import HELP, PlainLines, PlainReview

A, R, U = Decision.ACCEPTED, Decision.REJECTED, Decision.UNDECIDED
SOURCE = "".join(f"value_{number} = {number}\n" for number in range(60))
NEW = (
    SOURCE.replace("value_3 = 3\n", "three = 3\n")
    .replace("value_6 = 6\n", "six = 6\nseven = 7\n")
    .replace("value_30 = 30\n", "thirty = 30\n")
    .replace("value_50 = 50\n", "")
)


def asked(answers: str, new: str = NEW, source: str = SOURCE) -> tuple[Review, str]:
    document = open_bytes(source.encode(), "values.py")
    review = Review.start(document, make_hunks(make_result(document, new)))
    out = io.StringIO()
    report = run_checks(document.lines, new.splitlines(), "Do.", language_named("python"))
    review = PlainReview(PlainLines(io.BytesIO(answers.encode()), out), report.warnings).run(review)
    said = out.getvalue()
    assert "\r" not in said and "\x1b" not in said
    return review, said


@pytest.mark.parametrize(
    ("answers", "decisions"),
    [
        ("y\nn\ny\n", (A, R, A)),
        ("a\n", (A, A, A)),
        ("n\na\n", (R, A, A)),
        ("y\nd\n", (A, R, R)),
        ("y\nq\n", (A, U, U)),
        ("y\n", (A, U, U)),
        ("", (U, U, U)),
        ("j\ny\n", (U, A, U)),
        ("y\nu\nn\nq\n", (R, U, U)),
        ("u\nwhat\n?\ny\nq\n", (A, U, U)),
        ("y\nk\nn\nq\n", (R, U, U)),
        ("s\ny\nn\na\n", (A, R, A, A)),
    ],
)
def test_letters_decide(answers: str, decisions: tuple[Decision, ...]) -> None:
    review, said = asked(answers)
    assert review.decisions == decisions
    counts = [decisions.count(decision) for decision in (A, R, U)]
    assert said.endswith(f"{counts[0]} accepted, {counts[1]} rejected, {counts[2]} undecided.\n")


def test_hunks_are_shown_before_they_are_asked_about() -> None:
    _, said = asked("p\nq\n")
    assert said.count("+three = 3") == 2 and "thirty" not in said
    assert f"Hunk 1 of 3, 3 undecided [{','.join(HELP)}]: " in said
    _, said = asked("?\nq\n")
    assert all(f"{letter} - {words}" in said for letter, words in HELP.items())


def test_single_lines_by_their_numbers() -> None:
    review, said = asked("s\nn\nv\n1 2\nd\n")
    assert "   1 -value_6 = 6" in said
    assert review.data().decode() == SOURCE.replace("value_6 = 6\n", "six = 6\n")
    review, said = asked("v\n9\nv\n\nq\n")
    assert "9 is none of the lines 1 to" in said and review.decisions == (U, U, U)
    review, _ = asked("n\nv\n1-2\nq\n")
    assert review.decisions == (R, A, U)


def test_other_text_ends_with_a_dot() -> None:
    review, said = asked("n\ne\nvalue_27 = 27\n..\nown = 1\n.\nd\n")
    assert "thirty = 30" in said
    changed = review.data().decode()
    assert "value_27 = 27\n.\nown = 1\nvalue_34 = 34\n" in changed
    review, _ = asked("e\nhalf\n")
    assert review.decisions == (U, U, U)


def test_without_a_model_nothing_is_done_anew() -> None:
    review, said = asked("r\nq\n")
    assert "no model at hand" in said and review.decisions == (U, U, U)


def test_the_editor_is_asked() -> None:
    document = open_bytes(SOURCE.encode(), "values.py")
    review = Review.start(document, make_hunks(make_result(document, NEW)))
    out = io.StringIO()
    lines = PlainLines(io.BytesIO(b"E\nd\n"), out)
    done = PlainReview(lines, edit=lambda text: text.replace("three", "drei")).run(review)
    assert "drei = 3" in done.data().decode()

    def failing(text: str) -> str:
        raise UsageError("No editor.")

    done = PlainReview(PlainLines(io.BytesIO(b"E\nq\n"), out), edit=failing).run(review)
    assert done.decisions == (U, U, U) and "No editor." in out.getvalue()


def test_warnings_are_said_with_the_hunk_and_mended() -> None:
    new = SOURCE.replace("value_30 = 30\n", "value_30 = 30 \n").replace("value_3 = 3\n", "three = 3\u202e\n")
    review, said = asked("m\ny\nm\n", new)
    assert "No warning about this hunk can be mended." in said
    assert "Warning (churn)" in said and "RIGHT-TO-LEFT OVERRIDE" in said and "\u202e" not in said
    assert review.decisions == (A, R)


def test_what_a_blocking_check_is_about_is_not_accepted_with_the_rest() -> None:
    lines = SOURCE.splitlines()
    new = "\n".join([*lines[:2], "changed = 1", *lines[3:20], "# ... rest unchanged ..."]) + "\n"
    review, said = asked("a\ny\n", new)
    assert "have to be decided one by one" in said and "Blocking (elision)" in said
    assert review.decisions == (A, A)
