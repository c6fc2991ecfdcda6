"""`redraft bench pair`: a target with and without a draft model, on an edit and on free text.

Knows the options and the texts; what is measured is in `editor_engine.bench.pair`. Invariant: as every answer of the
benchmark, this one has its conditions.
"""

from dataclasses import replace

import click

from app.bench.answering import answering, isa_option, json_option, locate_model, repeats_option
from app.errors import UsageError
from app.load_flags import load_flags
from app.load_options import Given

FREE_TEXT = (
    "Write a Python module with a class for a bounded queue that several threads may use, and a few tests for it. "
    "Explain in two sentences what it does with a full queue."
)

EDIT = "docstrings"
"""The edit of the session that brings the most new text: drafts from the file have the least to say there."""


@click.command()
@load_flags(without=("draft_rule",))
@isa_option()
@repeats_option()
@click.option(
    "--tokens", type=click.IntRange(8, 4096), default=160, show_default=True, help="Most tokens of an answer."
)
@json_option
def pair(load: Given, isa: str | None, repeats: int, tokens: int, as_json: bool) -> None:
    """A draft model: the target alone, with drafts from the text, with the model's, and with both, in turns."""
    from app.bench.turns import own_session, peer_requests
    from editor_engine.bench.conditions import machine_conditions, model_conditions
    from editor_engine.bench.loading import chosen_isa
    from editor_engine.bench.pair import PairTask, compare, table
    from editor_engine.engine import Engine
    from editor_engine.requests import CompletionRequest, Message
    from editor_engine.store.installed import locate

    with answering("pair", as_json) as output:
        variant = chosen_isa(isa)
        located, options = locate_model(load)
        if options.draft_model is None:
            raise UsageError("A pair has two models; name the smaller one with --draft-model.")
        draft = locate(options.draft_model)
        output.progress(f"loading {located.id} and {draft.id}")
        engine = Engine.load(replace(options.config(located.path, draft.path), isa=variant))
        session = own_session()
        turn = next(turn for turn in session if turn.kind == EDIT)
        (asked,), _ = peer_requests([replace(turn, text=session[0].text)], lambda text: len(text) // 3)
        edit = CompletionRequest(asked.messages, min(tokens, asked.max_tokens), source=asked.source)
        text = CompletionRequest((Message("user", FREE_TEXT),), tokens)
        chosen = engine.drafting.pair
        weights = None if chosen is None else [engine.info.weights_bytes, chosen.model.info.weights_bytes]
        conditions = {
            **machine_conditions(),
            "model_id": located.id,
            "draft_model_id": draft.id,
            **model_conditions(engine.info),
            "weights_bytes": weights,
            "repeats": repeats,
        }
        figures = compare(engine, [PairTask("free text", text), PairTask("edit", edit)], repeats, output.progress)
        output.answer(conditions, table(figures), {"tasks": {task.name: task.fields() for task in figures}})
