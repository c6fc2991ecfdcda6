"""The options of a command that say which model is loaded and how: `app.load_options`'s table for click.

Knows click and the table. Invariant: the command gets one argument `load` with what was given, whatever the table has.
"""

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, TypeVar, cast

import click

from app.load_options import LOAD_OPTIONS, LoadOption
from app.value_kinds import typed

Command = TypeVar("Command", bound=Callable[..., object])


class _Kind(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A value of the table's kind."""

    def __init__(self, option: LoadOption) -> None:
        self.name = option.name
        self._option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> object:
        read = self._option.takes(typed(value, self._option.takes))
        if read is None:
            self.fail(f"it must be {self._option.wishes}, not {value!r}.", param, ctx)
        return read


def load_flags(
    *, only: Collection[str] = (), without: Collection[str] = (), **helps: str
) -> Callable[[Command], Command]:
    """A decorator that adds the options: all of the table, `only` those of these names, or all `without` these.

    `helps` has other words for an option.
    """

    def decorate(command: Command) -> Command:
        chosen = [option for option in LOAD_OPTIONS if (option.name in only or not only) and option.name not in without]

        @wraps(command)
        def called(**parameters: Any) -> Any:
            values = {option.name: parameters.pop(option.name) for option in chosen}
            return command(load={name: value for name, value in values.items() if value is not None}, **parameters)

        function: Callable[..., object] = called
        for option in reversed(chosen):  # decorators add from below
            words = helps.get(option.name, option.help)
            if option.metavar:
                add = click.option(
                    option.flag, option.name, type=_Kind(option), metavar=option.metavar, default=None, help=words
                )
            else:
                both = f"{option.flag}/{option.opposite}" if option.is_setting else option.flag
                add = click.option(both, option.name, is_flag=True, default=None, help=words)
            function = add(function)
        return cast(Command, function)

    return decorate
