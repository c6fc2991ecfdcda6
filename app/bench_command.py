"""`redraft bench`: options in, a workload run, a table or JSON lines out.

The workloads are in `editor_engine.bench` and `app.bench`. Invariant: with `--json`, stdout carries JSON lines only and
the last is a `result`, also after a failure; progress goes to stderr; every answer has its conditions.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from app.errors import AppError, ExitCode, InterruptedByUserError, UsageError
from app.json_events import JsonWriter
from editor_engine.errors import EngineError, RequestError

if TYPE_CHECKING:  # the engine brings numpy and the native core: 0.15 s that `--help` must not pay
    from editor_engine.bench.loading import BenchModel
    from editor_engine.bench.measure import Spread
    from editor_engine.store.installed import LocatedModel

Command = TypeVar("Command", bound=Callable[..., object])

CONTEXTS = (512, 1000, 4096, 8192)
PASS_CONTEXTS = (1000, 8000)
WIDEST = 64
"""Rows of the widest pass; room a context needs for measuring passes."""
SESSION_CONTEXT = 16384
"""Tokens the cache holds in an edit session."""
BARE_TOKENS = 1000
"""Tokens of the prompt that engines are compared on."""
BARE_OUTPUT = 65
"""Tokens decoded after it: 64 after the first."""


def _numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Whole numbers of at least 1 with commas between them."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 8 and int(part) for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of whole numbers such as 512,4096", ctx, param)
    return tuple(map(int, parts))


@click.group()
def bench() -> None:
    """Measure speed: every figure with its spread and its conditions."""


def _model_options(command: Command) -> Command:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Write JSON lines to stdout."),
        click.option("--repeats", type=click.IntRange(1, 1000), default=3, show_default=True, help="Runs per figure."),
        click.option("--isa", metavar="NAME", help="Kernel variant, such as avx2; by default the best one here."),
        click.option("--threads", type=click.IntRange(0, 1024), metavar="N", help="Threads; 0 takes every processor."),
        click.option("--model", metavar="MODEL", help="Catalogue id or path of a .gguf file."),
    ):
        command = option(command)
    return command


def _tasks_option(required: bool) -> Callable[[Command], Command]:
    path = click.Path(path_type=Path)
    words = "JSON lines with id, before, instruction and after."
    return click.option("--tasks", type=path, required=required, metavar="FILE", help=words)


class _Output:
    """Where a workload says what it found."""

    def __init__(self, workload: str, as_json: bool) -> None:
        self._workload = workload
        self._lines = JsonWriter(sys.stdout) if as_json else None

    def progress(self, words: str) -> None:
        """One step more."""
        click.echo(words, err=True)

    def answer(self, conditions: Mapping[str, object], table: str, fields: Mapping[str, object]) -> None:
        """The figures: words for people or the result line for programs."""
        if self._lines:
            more = {"workload": self._workload, "conditions": conditions, **fields}
            self._lines.write("result", outcome="unchanged", exit_code=int(ExitCode.OK), error=None, **more)
            return
        from editor_engine.bench.conditions import words

        click.echo(f"{words(conditions)}\n\n{table}")

    def failed(self, error: AppError) -> None:
        """The result line of a failure; its words are the caller's business."""
        if self._lines:
            outcome = "cancelled" if error.exit_code == ExitCode.INTERRUPTED else "failed"
            said = {"code": error.code, "message": str(error)}
            self._lines.result(outcome=outcome, exit_code=error.exit_code, error=said, workload=self._workload)


@contextmanager
def _answering(workload: str, as_json: bool) -> Iterator[_Output]:
    """Turn the engine's errors into the application's, and end a JSON answer with its result."""
    from app.clients.in_process import app_error
    from app.editing.interrupts import ends_as_interrupts

    output = _Output(workload, as_json)
    try:
        with ends_as_interrupts():
            yield output
    except (EngineError, AppError, KeyboardInterrupt, click.Abort) as error:
        failure: AppError
        if isinstance(error, RequestError):  # here, what is asked comes straight from the options
            failure = UsageError(str(error))
        elif isinstance(error, EngineError):
            failure = app_error(error)
        elif isinstance(error, AppError):
            failure = error
        else:
            failure = InterruptedByUserError("Interrupted; an unfinished run gives no figures.")
        output.failed(failure)
        raise failure from error


def _locate(model: str | None, threads: int | None) -> "tuple[LocatedModel, int]":
    """The model file and the threads of the options, else of the settings."""
    from app.settings import load_settings
    from editor_engine.config import default_threads
    from editor_engine.store.installed import locate

    settings = load_settings()
    chosen = settings.threads if threads is None else threads
    return locate(model or settings.model), chosen or default_threads()


def _load(
    model: str | None, threads: int | None, isa: str | None, context: int, output: _Output
) -> "tuple[BenchModel, str]":
    from editor_engine.bench.loading import chosen_isa, load_parts

    variant = chosen_isa(isa)

    located, chosen = _locate(model, threads)
    output.progress(f"loading {located.id}")
    return load_parts(located.path, chosen, context, variant), located.id


def _conditions(parts: "BenchModel", model_id: str, **more: object) -> dict[str, object]:
    from editor_engine.bench.conditions import machine_conditions, model_conditions

    return {**machine_conditions(), "model_id": model_id, **model_conditions(parts.model.info), **more}


def _fitting(contexts: Sequence[int] | None, defaults: Sequence[int], parts: "BenchModel", room: int) -> list[int]:
    """The contexts asked for; of the defaults, those the model can hold."""
    return list(contexts or (c for c in defaults if c + room <= parts.model.info.context_length))


def _rate_lines(rates: "Mapping[int, Spread]") -> str:
    return "\n".join(f"context {context:>6}  {spread.words(1):>22} tok/s" for context, spread in rates.items())


def _rate_fields(rates: "Mapping[int, Spread]") -> dict[str, object]:
    return {str(context): spread.fields() for context, spread in rates.items()}


def _contexts_option(command: Command) -> Command:
    return click.option(
        "--contexts", callback=_numbers, metavar="N,N", help="Tokens in the context; by default those the design names."
    )(command)


@bench.command()
@_model_options
@_contexts_option
def prefill(
    model: str | None,
    threads: int | None,
    isa: str | None,
    repeats: int,
    contexts: tuple[int, ...] | None,
    as_json: bool,
) -> None:
    """Tokens per second of reading a prompt, by its length."""
    from editor_engine.bench.filler import filler_tokens
    from editor_engine.bench.rates import prefill_rates

    with _answering("prefill", as_json) as output:
        parts, model_id = _load(model, threads, isa, max(contexts or CONTEXTS), output)
        lengths = _fitting(contexts, CONTEXTS, parts, 0)
        conditions = _conditions(parts, model_id, contexts=lengths, repeats=repeats)
        tokens = filler_tokens(max(lengths), parts.tokenizer.encode)
        rates = prefill_rates(parts.model, tokens, lengths, repeats, time.perf_counter, output.progress)
        output.answer(conditions, _rate_lines(rates), {"prefill_tok_s": _rate_fields(rates)})


@bench.command()
@_model_options
@_contexts_option
@click.option("--steps", type=click.IntRange(1, 4096), default=32, show_default=True, help="Tokens decoded in a run.")
@click.option("--passes", is_flag=True, help="Measure passes of 1 to 64 rows instead: the cost table of the drafter.")
def plain(
    model: str | None,
    threads: int | None,
    isa: str | None,
    repeats: int,
    contexts: tuple[int, ...] | None,
    steps: int,
    passes: bool,
    as_json: bool,
) -> None:
    """Tokens per second of plain decoding, by context; with --passes, what a pass costs by its rows."""
    from editor_engine.bench.filler import filler_tokens
    from editor_engine.bench.rates import pass_costs, pass_lines, plain_rates

    with _answering("plain", as_json) as output:
        defaults, room = (PASS_CONTEXTS, WIDEST) if passes else (CONTEXTS, steps)
        parts, model_id = _load(model, threads, isa, max(contexts or defaults) + room, output)
        chosen = _fitting(contexts, defaults, parts, room)
        conditions = _conditions(parts, model_id, contexts=chosen, repeats=repeats)
        tokens = filler_tokens(max(chosen) + WIDEST, parts.tokenizer.encode)
        if passes:
            rows = range(1, WIDEST + 1)
            tables = pass_costs(parts.model, tokens, chosen, rows, repeats, time.perf_counter, output.progress)
            fields: dict[str, object] = {"passes": [table.fields() for table in tables]}
            output.answer(conditions, "\n\n".join(map(pass_lines, tables)), fields)
            return
        rates = plain_rates(parts.model, tokens, chosen, steps, repeats, time.perf_counter, output.progress)
        output.answer({**conditions, "steps": steps}, _rate_lines(rates), {"plain_tok_s": _rate_fields(rates)})


@bench.command()
@_model_options
@_tasks_option(required=False)
@click.option("--turns", type=click.IntRange(0), default=1, show_default=True, help="Edits in a round; 0: none.")
@click.option("--mode", "modes", multiple=True, metavar="MODE", help="A mode of llama.cpp; repeat for several. [all]")
@click.option("--no-bare", is_flag=True, help="Leave the bare prompt out: no prefill and plain figures.")
def peers(
    model: str | None,
    threads: int | None,
    isa: str | None,
    repeats: int,
    tasks: Path | None,
    turns: int,
    modes: tuple[str, ...],
    no_bare: bool,
    as_json: bool,
) -> None:
    """Against llama.cpp: same file, messages and threads, in turns, every engine in a process of its own."""
    from app.bench.turns import own_session, peer_requests, turns_of_file
    from editor_engine.bench import peer_llamacpp, peers
    from editor_engine.bench.conditions import machine_conditions, package_version
    from editor_engine.bench.filler import filler_text
    from editor_engine.bench.loading import chosen_isa, load_file_tokenizer
    from editor_engine.bench.peer_process import PeerJob, PeerRequest
    from editor_engine.requests import Message

    with _answering("peers", as_json) as output:
        peer_llamacpp.require_package()
        peer_llamacpp.require_modes(modes)
        variant = chosen_isa(isa)
        located, chosen = _locate(model, threads)
        tokenizer, sha256 = load_file_tokenizer(located.path)

        def count(text: str) -> int:
            return len(tokenizer.encode(text))

        edits = (turns_of_file(tasks) if tasks else own_session())[:turns]
        requests, longest = peer_requests(edits, count)
        text = f"{filler_text(BARE_TOKENS - 20, tokenizer.encode)}\nRepeat this file word for word."
        bare = None if no_bare else PeerRequest((Message("user", text),), BARE_OUTPUT)
        longest = max(longest, count(text) + BARE_OUTPUT + 64)
        context = -(-(longest + 2 * WIDEST) // 256) * 256
        job = PeerJob(str(located.path), "", chosen, context, variant, requests)
        conditions = {
            **machine_conditions(),
            "xllamacpp": package_version(peer_llamacpp.PACKAGE),
            "model_id": located.id,
            "model_sha256": sha256,
            "threads": chosen,
            "isa": variant,
            "context": context,
            "repeats": repeats,
            "edits": [edit.kind for edit in edits],
        }
        figures = peers.compare(job, bare, modes or peer_llamacpp.MODES, repeats, output.progress)
        output.answer(conditions, peers.table(figures), figures.fields())


@bench.command()
@_model_options
@_tasks_option(required=False)
@click.option("--turns", type=click.IntRange(1), default=10, show_default=True, help="Edits of the session, at most.")
@click.option("--score", is_flag=True, help="Report the mean log-likelihood of the output, too; slower on both sides.")
def edit(
    model: str | None,
    threads: int | None,
    isa: str | None,
    repeats: int,
    tasks: Path | None,
    turns: int,
    score: bool,
    as_json: bool,
) -> None:
    """A session of edits over one file, with drafting and without, compared token by token."""
    from app.bench.edit_session import run_session, table
    from app.bench.turns import own_session, turns_of_file

    with _answering("edit", as_json) as output:
        chosen = (turns_of_file(tasks) if tasks else own_session())[:turns]
        parts, model_id = _load(model, threads, isa, SESSION_CONTEXT, output)
        conditions = _conditions(parts, model_id, repeats=repeats, turns=[turn.kind for turn in chosen], score=score)
        figures = run_session(chosen, parts.engine(), parts.model, repeats, output.progress, score=score)
        output.answer(conditions, table(figures), figures.fields())


@bench.command()
@click.option("--model", metavar="MODEL", help="Catalogue id or path of the .gguf file whose tokenizer is used.")
@_tasks_option(required=True)
@click.option("--curve", "curves", multiple=True, type=click.Choice(["flat", "avx2"]), help="Cost curve. [both]")
@click.option("--json", "as_json", is_flag=True, help="Write JSON lines to stdout.")
def replay(model: str | None, tasks: Path, curves: tuple[str, ...], as_json: bool) -> None:
    """Drafters and simulated peers over edits with a known result; no model runs, so figures never vary."""
    from editor_engine.bench import replay as replays
    from editor_engine.bench.conditions import package_version
    from editor_engine.bench.loading import load_file_tokenizer
    from editor_engine.bench.replay_peers import CURVES, DRAFTERS

    with _answering("replay", as_json) as output:
        known = replays.load_tasks(tasks)
        located, _ = _locate(model, None)
        tokenizer, sha256 = load_file_tokenizer(located.path)
        token_tasks = replays.tokenise(known, tokenizer)
        chosen = {name: curve for name, curve in CURVES.items() if not curves or name in curves}
        figures = replays.replay(token_tasks, DRAFTERS, chosen)
        conditions = {
            "redraft": package_version("redraft"),
            "tokenizer_of": located.id,
            "model_sha256": sha256,
            "tasks": len(token_tasks),
            "target_tokens": sum(len(task.target) for task in token_tasks),
            "curves": list(chosen),
        }
        output.answer(conditions, replays.table(figures), replays.result_fields(figures))
