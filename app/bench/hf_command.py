"""`redraft bench hf`: a Hugging Face checkpoint by our engine and by transformers itself, in turns.

Knows the options; what is run is in `hf_session`, what is compared in `editor_engine.bench.hf`. Invariant: as every
answer of the benchmark, this one has its conditions.
"""

from pathlib import Path

import click

from app.bench.answering import answering, locate_model, model_options, repeats_option, tasks_option
from app.load_options import Given


@click.command()
@model_options
@repeats_option()
@tasks_option()
@click.option("--turns", type=click.IntRange(1), default=1, show_default=True, help="Edits in a round.")
@click.option("--against", metavar="GGUF", help="The same model as a GGUF file, for the native engine beside it.")
@click.option(
    "--lookup", type=click.IntRange(1, 63), default=10, show_default=True, help="Tokens transformers looks up."
)
def hf(
    load: Given,
    isa: str | None,
    repeats: int,
    tasks: Path | None,
    turns: int,
    against: str | None,
    lookup: int,
    as_json: bool,
) -> None:
    """A Hugging Face checkpoint: ours against transformers, plain and with its prompt lookup, on the same weights."""
    from app.bench.hf_session import run_session
    from app.bench.turns import own_session, turns_of_file
    from editor_engine.bench.hf import table
    from editor_engine.store.installed import locate

    with answering("hf", as_json) as output:
        chosen = (turns_of_file(tasks) if tasks else own_session())[:turns]
        located, options = locate_model(load)
        native = None if against is None else locate(against).path
        output.progress(f"loading {located.id}")
        conditions, figures = run_session(options, located.path, native, isa, chosen, repeats, lookup, output.progress)
        output.answer({"model_id": located.id, **conditions}, table(figures), figures.fields())
