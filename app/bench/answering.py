"""How a command that measures answers: progress to stderr, figures to stdout, as words or as one line of JSON.

Also what all of them do first: find the model, load it, and say under which conditions. Invariant: with `--json`,
stdout carries JSON lines only and the last is a `result`, also after a failure and after ctrl-C, SIGTERM or SIGHUP.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from app.editing.interrupts import ends_as_interrupts
from app.errors import AppError, ExitCode, InterruptedByUserError, UsageError
from app.json_events import JsonWriter, ending_in_a_result
from app.load_flags import load_flags
from app.load_options import Given, LoadOptions
from app.terminal_text import visible_lines
from editor_engine.errors import EngineError, RequestError

if TYPE_CHECKING:  # the engine brings numpy and the native core: 0.15 s that `--help` must not pay
    from editor_engine.bench.loading import BenchModel
    from editor_engine.store.installed import LocatedModel

Command = TypeVar("Command", bound=Callable[..., object])

_DECIDED_HERE = ("context_length", "draft_rule")
"""Options of a load that a workload decides itself: what it measures would change with them."""


def model_options(command: Command) -> Command:
    """The options that choose a model and how it is run, and `--json`."""
    return _options(command, without=(*_DECIDED_HERE, "draft_model"))


def pair_options(command: Command) -> Command:
    """As `model_options`, with a draft model."""
    return _options(command, without=_DECIDED_HERE)


def _options(command: Command, without: tuple[str, ...]) -> Command:
    return load_flags(without=without)(isa_option()(json_option(command)))


def json_option(command: Command) -> Command:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON lines to stdout.")(command)


def isa_option(words: str = "Kernel variant, such as avx2") -> Callable[[Command], Command]:
    """`--isa`; `words` say of what."""
    return click.option("--isa", metavar="NAME", help=f"{words}; by default the best one here.")


def repeats_option(words: str = "Runs per figure.") -> Callable[[Command], Command]:
    """`--repeats`; `words` say of what."""
    return click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True, help=words)


def tasks_option(*, required: bool = False) -> Callable[[Command], Command]:
    """`--tasks`: edits of the user's own."""
    words = "JSON lines with id, before, instruction and after."
    return click.option("--tasks", type=click.Path(path_type=Path), required=required, metavar="FILE", help=words)


class Output:
    """Where a workload says what it found."""

    def __init__(self, workload: str, as_json: bool) -> None:
        self._workload = workload
        self.lines = JsonWriter(sys.stdout) if as_json else None

    def progress(self, words: str) -> None:
        """One step more."""
        click.echo(visible_lines(words), err=True)

    def answer(
        self,
        conditions: Mapping[str, object],
        table: str,
        fields: Mapping[str, object],
        verdict: AppError | None = None,
    ) -> None:
        """The figures: words for people or the result line for programs; `verdict` is why they are no success."""
        if self.lines:
            more = {"workload": self._workload, "conditions": conditions, **fields}
            if verdict is None:
                self.lines.result(outcome="unchanged", exit_code=ExitCode.OK, **more)
            else:
                self.lines.failed(verdict, **more)
            return
        from editor_engine.bench.conditions import words

        click.echo(visible_lines(f"{words(conditions)}\n\n{table}"))


@contextmanager
def answering(workload: str, as_json: bool) -> Iterator[Output]:
    """Turn the engine's errors into the application's, and end a JSON answer with its result."""
    from app.clients.in_process import app_error

    output = Output(workload, as_json)
    with ending_in_a_result(output.lines, workload=workload, conditions=None):
        try:
            with ends_as_interrupts():
                yield output
        except RequestError as error:  # here, what is asked comes straight from the options
            raise UsageError(str(error)) from error
        except EngineError as error:
            raise app_error(error) from error
        except (KeyboardInterrupt, click.Abort) as error:
            raise InterruptedByUserError("Interrupted; an unfinished run gives no figures.") from error


def locate_model(load: Given) -> "tuple[LocatedModel, LoadOptions]":
    """The model and the options of the command, else of the settings; its threads are a number of threads."""
    from app.settings import load_settings
    from editor_engine.config import default_threads
    from editor_engine.store.installed import locate

    options = load_settings().load.over(load)
    return locate(options.model), replace(options, threads=options.threads or default_threads())


def load_model(
    load: Given, isa: str | None, context: int, output: Output, *, paired: bool = False
) -> "tuple[BenchModel, str]":
    """(model in parts, the id it goes by), with a cache of at most `context` tokens; `paired`: with the draft model of
    the command, else of the settings, if there is one."""
    from editor_engine.bench.loading import chosen_isa, load_parts
    from editor_engine.store.installed import locate

    variant = chosen_isa(isa)
    located, options = locate_model(load)
    draft = locate(options.draft_model) if paired and options.draft_model is not None else None
    if located.choice is not None:
        output.progress(located.choice)
    output.progress(f"loading {located.id}" if draft is None else f"loading {located.id} and {draft.id}")
    config = replace(options, context_length=context).config(located.path, None if draft is None else draft.path)
    parts = load_parts(replace(config, isa=variant))
    for note in parts.notes:
        output.progress(f"note: {note}")
    return parts, located.id


def model_and_machine(parts: "BenchModel", model_id: str, **more: object) -> dict[str, object]:
    """The conditions of what was measured."""
    from editor_engine.bench.conditions import machine_conditions, model_conditions

    return {**machine_conditions(), "model_id": model_id, **model_conditions(parts.model.info), **more}
