"""`redraft bench`: options in, a workload run, a table or JSON lines out.

The workloads are in `editor_engine.bench` and `app.bench`, what their answers share in `app.bench.answering`.
Invariant: every answer has its conditions.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.bench.answering import (
    Command,
    answering,
    isa_option,
    json_option,
    load_model,
    locate_model,
    model_and_machine,
    model_options,
    repeats_option,
    tasks_option,
)
from app.bench.hf_command import hf
from app.bench.pair_command import pair
from app.errors import UsageError
from app.json_process import COMMAND
from app.load_flags import load_flags
from app.load_options import Given, command_words

if TYPE_CHECKING:  # the engine brings numpy and the native core: 0.15 s that `--help` must not pay
    from editor_engine.bench.loading import BenchModel
    from editor_engine.bench.measure import Spread

CONTEXTS = (512, 1000, 4096, 8192)
PASS_CONTEXTS = (1000, 8000)
WIDEST = 64
"""Rows of the widest pass; room a context needs for measuring passes."""
SESSION_CONTEXT = 16384
"""Tokens the cache holds in an edit session."""
MEASURED = "measured"
"""Name of the cost curve that was measured here."""
BARE_TOKENS = 1000
"""Tokens of the prompt that engines are compared on."""
SERVER_PROMPT = 2000
"""Tokens of a prompt that is left in the middle of its prefill."""
BARE_OUTPUT = 65
"""Tokens decoded after it: 64 after the first."""


def _numbers(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    """Whole numbers of at least 1 with commas between them."""
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 8 and int(part) for part in parts):
        raise click.BadParameter(f"{value!r} is not a list of whole numbers from 1 to 9999999, as 512,4096", ctx, param)
    return tuple(map(int, parts))


@click.group()
def bench() -> None:
    """Measure speed: every figure with its spread and its conditions."""


bench.add_command(hf)
bench.add_command(pair)


def _model_options(command: Command) -> Command:
    return model_options(repeats_option()(command))


def _fitting(contexts: Sequence[int] | None, defaults: Sequence[int], parts: "BenchModel", room: int = 0) -> list[int]:
    """The contexts asked for; of the defaults, those the model can hold."""
    return list(contexts or (c for c in defaults if c + room <= parts.model.info.context_length))


def _rate_lines(rates: "Mapping[int, Spread]") -> str:
    return "\n".join(f"context {context:>6}  {spread.words(1):>22} tok/s" for context, spread in rates.items())


def _rate_fields(rates: "Mapping[int, Spread]") -> dict[str, object]:
    return {str(context): spread.fields() for context, spread in rates.items()}


def _contexts_option(more: str = "") -> Callable[[Command], Command]:
    words = f"Tokens in the context. [{_listed(CONTEXTS)}, as far as the model reaches{more}]"
    return click.option("--contexts", callback=_numbers, metavar="N,N", help=words)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


@bench.command()
@_model_options
@_contexts_option()
def prefill(
    load: Given,
    isa: str | None,
    repeats: int,
    contexts: tuple[int, ...] | None,
    as_json: bool,
) -> None:
    """Tokens per second of reading a prompt, by its length."""
    from editor_engine.bench.filler import filler_tokens
    from editor_engine.bench.rates import check_contexts, over_base, prefill_rates

    with answering("prefill", as_json) as output:
        parts, model_id = load_model(load, isa, max(contexts or CONTEXTS), output)
        lengths = check_contexts(parts.model, _fitting(contexts, CONTEXTS, parts), 0)
        conditions = model_and_machine(parts, model_id, contexts=lengths, repeats=repeats)
        tokens = filler_tokens(max(lengths), parts.tokenizer.encode)
        rates = prefill_rates(parts.model, tokens, lengths, repeats, time.perf_counter, output.progress)
        base, ratios = over_base(rates)
        words = [
            f"context {context:>6}  {spread.words():>22} of the rate at {base}" for context, spread in ratios.items()
        ]
        fields = {"prefill_tok_s": _rate_fields(rates), "base_context": base, "over_base": _rate_fields(ratios)}
        output.answer(conditions, "\n".join([_rate_lines(rates), *words]), fields)


@bench.command()
@_model_options
@_contexts_option(f"; with --passes {_listed(PASS_CONTEXTS)}")
@click.option("--steps", type=click.IntRange(1, 4096), default=32, show_default=True, help="Tokens decoded in a run.")
@click.option("--passes", is_flag=True, help="Measure passes of several rows instead: the cost table of the drafter.")
@click.option("--rows", callback=_numbers, metavar="N,N", help="Rows of those passes, at most 64.")
def plain(
    load: Given,
    isa: str | None,
    repeats: int,
    contexts: tuple[int, ...] | None,
    steps: int,
    passes: bool,
    rows: tuple[int, ...] | None,
    as_json: bool,
) -> None:
    """Tokens per second of plain decoding, by context; with --passes, what a pass costs by its rows."""
    from editor_engine.bench.filler import filler_tokens
    from editor_engine.bench.rates import PASS_ROWS, check_contexts, pass_costs, pass_lines, plain_rates

    with answering("plain", as_json) as output:
        _refuse_what_is_not_looked_at(passes, rows)
        defaults, room = (PASS_CONTEXTS, WIDEST) if passes else (CONTEXTS, steps)
        parts, model_id = load_model(load, isa, max(contexts or defaults) + room, output)
        chosen = check_contexts(parts.model, _fitting(contexts, defaults, parts, room), room)
        conditions = model_and_machine(parts, model_id, contexts=chosen, repeats=repeats)
        tokens = filler_tokens(max(chosen) + WIDEST, parts.tokenizer.encode)
        if passes:
            counts = sorted(set(rows or PASS_ROWS))
            tables = pass_costs(parts.model, tokens, chosen, counts, repeats, time.perf_counter, output.progress)
            fields: dict[str, object] = {"passes": [table.fields() for table in tables]}
            output.answer(conditions, "\n\n".join(map(pass_lines, tables)), fields)
            return
        rates = plain_rates(parts.model, tokens, chosen, steps, repeats, time.perf_counter, output.progress)
        output.answer({**conditions, "steps": steps}, _rate_lines(rates), {"plain_tok_s": _rate_fields(rates)})


def _refuse_what_is_not_looked_at(passes: bool, rows: tuple[int, ...] | None) -> None:
    """Figures of other rows or steps than were asked for would be taken for what was asked."""
    if rows and not passes:
        raise UsageError("--rows says which passes --passes measures; give both.")
    if rows and max(rows) > WIDEST:
        raise UsageError(f"A pass has 1 to {WIDEST} rows, not {max(rows)}.")
    if passes and click.get_current_context().get_parameter_source("steps") is click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--steps is for plain decoding; with --passes, --rows and --repeats say what is measured.")


@bench.command()
@_model_options
@tasks_option()
@click.option("--turns", type=click.IntRange(0), default=1, show_default=True, help="Edits in a round; 0: none.")
@click.option("--mode", "modes", multiple=True, metavar="MODE", help="As none or ngram-mod; repeat for several. [all]")
@click.option("--no-bare", is_flag=True, help="Leave the bare prompt out: no prefill and plain figures.")
def peers(
    load: Given,
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

    with answering("peers", as_json) as output:
        peer_llamacpp.require_package()
        modes = tuple(mode.replace("-", "_") for mode in modes)  # its own documentation spells them both ways
        peer_llamacpp.require_modes(modes)
        variant = chosen_isa(isa)
        located, options = locate_model(load)
        tokenizer, sha256 = load_file_tokenizer(located.path)

        def count(text: str) -> int:
            return len(tokenizer.encode(text))

        edits = (turns_of_file(tasks) if tasks else own_session())[:turns]
        requests, longest = peer_requests(edits, count)
        text = f"{filler_text(BARE_TOKENS - 20, tokenizer.encode)}\nRepeat this file word for word."
        bare = None if no_bare else PeerRequest((Message("user", text),), BARE_OUTPUT)
        longest = max(longest, count(text) + BARE_OUTPUT + 64)
        context = -(-(longest + 2 * WIDEST) // 256) * 256
        job = PeerJob(str(located.path), "", options.threads, context, variant, requests)
        conditions = {
            **machine_conditions(),
            "xllamacpp": package_version(peer_llamacpp.PACKAGE),
            "model_id": located.id,
            "model_sha256": sha256,
            "threads": options.threads,
            "isa": variant,
            "context": context,
            "repeats": repeats,
            "edits": [edit.kind for edit in edits],
        }
        figures = peers.compare(job, bare, modes or peer_llamacpp.MODES, repeats, output.progress)
        output.answer(conditions, peers.table(figures), figures.fields())


@bench.command()
@_model_options
@tasks_option()
@click.option("--turns", type=click.IntRange(1), default=10, show_default=True, help="Edits of the session, at most.")
@click.option("--score", is_flag=True, help="Report the mean log-likelihood of the output, too; slower on both sides.")
def edit(
    load: Given,
    isa: str | None,
    repeats: int,
    tasks: Path | None,
    turns: int,
    score: bool,
    as_json: bool,
) -> None:
    """A session of edits over one file, with drafting and without, compared token by token."""
    from app.bench.edit_session import run_session
    from app.bench.session_figures import table
    from app.bench.turns import own_session, turns_of_file

    with answering("edit", as_json) as output:
        chosen = (turns_of_file(tasks) if tasks else own_session())[:turns]
        parts, model_id = load_model(load, isa, SESSION_CONTEXT, output)
        conditions = model_and_machine(
            parts, model_id, repeats=repeats, turns=[turn.kind for turn in chosen], score=score
        )
        figures = run_session(chosen, parts.engine(), parts.model, repeats, output.progress, score=score)
        output.answer(conditions, table(figures), figures.fields())


@bench.command()
@load_flags(
    only=("model", "threads"),
    model="Catalogue id or path of the .gguf file whose tokenizer is used.",
    threads="Threads of the measured curve.",
)
@tasks_option(required=True)
@click.option(
    "--curve",
    "curves",
    multiple=True,
    type=click.Choice(["flat", "avx2", MEASURED]),
    help="Cost curve; measured: what passes of this model took here, by --threads and --isa. [flat and avx2]",
)
@isa_option("Kernel variant of the measured curve")
@json_option
def replay(load: Given, tasks: Path, curves: tuple[str, ...], isa: str | None, as_json: bool) -> None:
    """Drafters and simulated peers over edits with a known result; no model runs, so figures never vary."""
    from editor_engine.bench import replay as replays
    from editor_engine.bench.conditions import package_version
    from editor_engine.bench.loading import chosen_isa, load_file_tokenizer, measured_curve
    from editor_engine.bench.replay_peers import CURVES, DRAFTERS

    with answering("replay", as_json) as output:
        known = replays.load_tasks(tasks)
        located, options = locate_model(load)
        tokenizer, sha256 = load_file_tokenizer(located.path)
        token_tasks = replays.tokenise(known, tokenizer)
        chosen = {name: curve for name, curve in CURVES.items() if not curves or name in curves}
        if MEASURED in curves:
            variant = chosen_isa(isa)
            chosen[MEASURED] = measured_curve(sha256, options.threads, variant)
        figures = replays.replay(token_tasks, DRAFTERS, chosen)
        conditions: dict[str, object] = {
            "redraft": package_version("redraft"),
            "tokenizer_of": located.id,
            "model_sha256": sha256,
            "tasks": len(token_tasks),
            "target_tokens": sum(len(task.target) for task in token_tasks),
            "curves": list(chosen),
        }
        if MEASURED in curves:
            conditions |= {"threads": options.threads, "isa": variant}
        output.answer(conditions, replays.table(figures), replays.result_fields(figures))


@bench.command()
@_model_options
@click.option("--steps", type=click.IntRange(2, 4096), default=65, show_default=True, help="Tokens decoded in a run.")
def server(load: Given, isa: str | None, repeats: int, steps: int, as_json: bool) -> None:
    """What `redraft serve` costs over the engine in process; its start, its health, and how soon it is idle again."""
    import tempfile

    from app.bench.serving import measure_server
    from editor_engine.bench.filler import filler_text
    from editor_engine.requests import CompletionRequest, Message

    with answering("server", as_json) as output, tempfile.TemporaryDirectory(prefix="redraft-bench-") as folder:
        parts, model_id = load_model(load, isa, BARE_TOKENS + SERVER_PROMPT + steps, output)
        info = parts.model.info
        located, _ = locate_model(load)
        kernels = ["--isa", info.isa] if info.backend == "native" else []
        conditions = model_and_machine(parts, model_id, repeats=repeats, steps=steps)

        def request(tokens: int, first: str, most: int) -> CompletionRequest:
            text = f"{first}\n{filler_text(tokens, parts.tokenizer.encode)}Explain every function."
            return CompletionRequest((Message("user", text),), most, draft=False)

        figures = measure_server(
            [*command_words({**load, "model": str(located.path), "threads": info.threads}), *kernels],
            parts.engine().complete,
            request(BARE_TOKENS // 4, "Code:", steps),
            lambda run: request(min(SERVER_PROMPT, info.context_length // 2), f"Code, part {run}:", 1),
            Path(folder),
            repeats,
            time.perf_counter,
            output.progress,
        )
        output.answer(conditions, figures.table(), figures.fields())


@bench.command()
@load_flags()
@repeats_option("Starts of the program.")
@json_option
def ui(load: Given, repeats: int, as_json: bool) -> None:
    """The terminal UI in a pseudo terminal: file visible, key to paint while decoding, first hunk, escape, memory."""
    import tempfile

    from app.bench.turns import RENAME, own_session
    from app.bench.ui_latency import measure_ui
    from editor_engine.bench.conditions import machine_conditions

    with answering("ui", as_json) as output, tempfile.TemporaryDirectory(prefix="redraft-bench-") as folder:
        located, options = locate_model(load)
        conditions = {**machine_conditions(), "model_id": located.id, "threads": options.threads, "repeats": repeats}
        text, instruction = own_session()[0].text or "", own_session()[RENAME].instruction
        words = command_words({**load, "model": str(located.path), "threads": options.threads})
        figures = measure_ui(words, text, instruction, Path(folder), repeats, time.perf_counter, output.progress)
        output.answer(conditions, figures.table(), figures.fields())


@bench.command()
@load_flags()
@click.option(
    "--files", type=click.IntRange(1, 1_000_000), default=50_000, show_default=True, help="Files in the tree."
)
@click.option("--saves", type=click.IntRange(1, 1000), default=5, show_default=True, help="Saves in a run.")
@click.option("--idle", type=click.FloatRange(0.1), default=65.0, show_default=True, help="Idle seconds in a run.")
@repeats_option("Runs of a watch.")
@json_option
def watch(load: Given, files: int, saves: int, idle: float, repeats: int, as_json: bool) -> None:
    """A watch on a large tree: its start, what it costs while idle, and a save's way to its proposal."""
    import tempfile

    from app.bench.watch_session import make_tree, measure_watch
    from editor_engine.bench.conditions import machine_conditions
    from prompts import bench_text

    with answering("watch", as_json) as output, tempfile.TemporaryDirectory(prefix="redraft-bench-") as folder:
        located, options = locate_model(load)
        root = Path(folder, "tree")
        output.progress(f"making {files} files")
        make_tree(root, files)
        conditions = {**machine_conditions(), "model_id": located.id, "threads": options.threads, "repeats": repeats}
        words = command_words({**load, "model": str(located.path), "threads": options.threads})
        figures = measure_watch(
            [*COMMAND, "watch", *words],
            {"XDG_STATE_HOME": str(Path(folder, "state"))},
            root,
            bench_text("parcels"),
            saves=saves,
            repeats=repeats,
            idle_s=idle,
            progress=output.progress,
        )
        output.answer({**conditions, "files": files, "saves": saves, "idle_s": idle}, figures.table(), figures.fields())
