"""The template loader: what is filled in is data, and mistakes are loud."""

import pytest

from prompts import render


def test_values_are_never_read_as_templates() -> None:
    text = render("edit_file", fence="```", tag="sh", source="echo $instruction ${HOME} $$ $", instruction="$source")
    assert "echo $instruction ${HOME} $$ $\n```" in text
    assert "$source" in text


def test_a_template_ends_without_a_newline() -> None:
    assert render("edit_system") == render("edit_system").rstrip("\n")


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"fence": "```", "tag": "", "source": ""}, KeyError),
        ({"fence": "```", "tag": "", "source": "", "instruction": "", "extra": ""}, ValueError),
    ],
)
def test_places_and_values_must_agree(values: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        render("edit_file", **values)


def test_an_unknown_template_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        render("no_such_template")
