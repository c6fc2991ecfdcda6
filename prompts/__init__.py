"""Prompt templates as text files, and the one loader that reads them.

Knows nothing of files, models or fences: it fills named places. Invariant: what is filled in is never read as a
template, so a source full of dollar signs comes out as it went in.
"""

from functools import cache
from importlib.resources import files
from string import Template


@cache
def _template(name: str) -> Template:
    text = files(__name__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return Template(text.removesuffix("\n"))


def render(template: str, /, **values: str) -> str:
    """The file `template`.txt of this folder with its `$places` filled.

    Args:
        template: file name without ending.
        values: exactly one text per place of the template.

    Raises:
        FileNotFoundError: no such template.
        KeyError: a place without a value.
        ValueError: a value without a place, or a stray dollar sign in the template.
    """
    places = _template(template)
    unused = values.keys() - set(places.get_identifiers())
    if unused:
        raise ValueError(f"template {template} has no place for {', '.join(sorted(unused))}")
    return places.substitute(values)


def bench_text(name: str, /) -> str:
    """The benchmark's own text bench/`name`.txt, as it is: no places, nothing filled in."""
    return files(__name__).joinpath("bench", f"{name}.txt").read_text(encoding="utf-8")


def recipes_toml() -> str:
    """The instructions offered to everyone, as the TOML text of recipes.toml."""
    return files(__name__).joinpath("recipes.toml").read_text(encoding="utf-8")
