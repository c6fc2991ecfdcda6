"""Mending: what a check found is gone afterwards, and the rest of the change is still there."""

from app.editing.checks import CheckWarning, run_checks
from app.editing.diff import make_hunks
from app.editing.document import open_bytes
from app.editing.language import language_named
from app.editing.mending import held_hunks, mend, touched
from app.editing.result import make_result
from app.editing.review import Decision, Review
from tests.support.headless_edit import SOURCE

PYTHON = language_named("python")


def reviewed(new: str, source: str = SOURCE) -> tuple[Review, tuple[CheckWarning, ...]]:
    document = open_bytes(source.encode(), "sums.py")
    result = make_result(document, new)
    return Review.start(document, make_hunks(result)), checked(source, new)


def checked(source: str, new: str) -> tuple[CheckWarning, ...]:
    return run_checks(source.splitlines(), new.splitlines(), "Do.", PYTHON, max_deletions=1).warnings


def of_code(warnings: tuple[CheckWarning, ...], code: str) -> CheckWarning:
    (warning,) = [warning for warning in warnings if warning.code == code]
    return warning


def everything(review: Review) -> str:
    return review.decide_rest(Decision.ACCEPTED).data().decode()


def test_lost_lines_come_back_and_the_rest_stays() -> None:
    new = SOURCE.replace("    low = min(items)\n    high = max(items)\n    return high - low\n", "    pass\n")
    new = new.replace('"""Sums."""', '"""All sums."""')
    review, warnings = reviewed(new)
    mended = mend(review, of_code(warnings, "lost_lines"))
    text = everything(mended)
    assert "    return high - low\n" in text and "All sums" in text
    assert not [warning for warning in checked(SOURCE, text) if warning.code == "lost_lines"]
    assert mended.undo().items == review.items
    assert Decision.ACCEPTED not in mended.decisions


def test_code_left_out_comes_back_without_its_placeholder() -> None:
    start = SOURCE.index("    if not items")
    new = SOURCE[:start] + "    # ... rest of the code unchanged ...\n"
    new = new.replace('"""Sums."""', '"""All sums."""')
    review, warnings = reviewed(new)
    elision = of_code(warnings, "elision")
    assert held_hunks(review, warnings) == frozenset(touched(review, elision)) != frozenset()
    text = everything(mend(review, elision))
    assert text == SOURCE.replace('"""Sums."""', '"""All sums."""')
    assert checked(SOURCE, text) == ()


def test_churn_goes_and_the_change_beside_it_stays() -> None:
    new = SOURCE.replace("    result = 0\n", "    result = 0   \n").replace("result += item", "result += 2 * item")
    new = new.replace("    low = min(items)\n", "    low = min( items )\n").replace(
        "\n\n\ndef spread", "\n\ndef spread"
    )
    review, warnings = reviewed(new)
    text = everything(mend(review, of_code(warnings, "churn")))
    assert text == SOURCE.replace("result += item", "result += 2 * item")


def test_added_blank_lines_are_churn_too() -> None:
    review, warnings = reviewed(SOURCE.replace("    result = 0\n", "    result = 0\n\n\n"))
    assert everything(mend(review, of_code(warnings, "churn"))) == SOURCE


def test_deletions_are_taken_back() -> None:
    new = SOURCE[: SOURCE.index("def spread")].rstrip("\n") + "\n"
    review, warnings = reviewed(new.replace("return 0", "return 0.0"))
    text = everything(mend(review, of_code(warnings, "deletions")))
    assert text == SOURCE.replace("return 0", "return 0.0")


def test_a_syntax_error_cannot_be_mended_but_is_found() -> None:
    review, warnings = reviewed(SOURCE.replace("return 0\n", "return (0\n"))
    syntax = of_code(warnings, "syntax")
    assert touched(review, syntax) == (1,)
    assert mend(review, syntax) == review
