"""Runs the workload `hf`: loads a Hugging Face checkpoint once, and the native engine beside it when one is named.

Brings requests of edits, engines and transformers' own decoding together; what is compared, and how, is in
`editor_engine.bench.hf`. Invariant: every way but the native one decodes the same prompt ids with the same
weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.bench.turns import Turn, peer_requests
from app.load_options import LoadOptions
from editor_engine.bench import hf
from editor_engine.bench.conditions import machine_conditions, model_conditions, package_version
from editor_engine.bench.peer_process import WARM_UP, PeerRequest
from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.loading import load
from editor_engine.request_tokens import tokenise
from editor_engine.requests import CompletionRequest
from editor_engine.text.tokenizer import Tokenizer

if TYPE_CHECKING:  # torch
    from editor_engine.models.hf.model import HfModel

PACKAGES = ("torch", "transformers", "bitsandbytes")


def run_session(
    options: LoadOptions,
    folder: Path,
    against: Path | None,
    isa: str | None,
    turns: Sequence[Turn],
    rounds: int,
    lookup: int,
    progress: Callable[[str], None],
) -> tuple[dict[str, object], hf.HfFigures]:
    """(conditions, figures) of the model in `folder`; `against` is a GGUF file for the native engine, or
    None, and `isa` its kernel variant.

    Raises what loading raises, RequestError for a path that is no folder.
    """
    if not folder.is_dir():
        raise RequestError(f"{folder} is no folder with a Hugging Face checkpoint; `bench edit` measures a GGUF file.")
    loaded = load(options.config(folder, None), instructed=True)

    from editor_engine.models.hf.model import HfModel  # torch, which is loaded by now

    model, template = loaded.model, loaded.template or ""  # `instructed`: there is one
    assert isinstance(model, HfModel)  # what a folder is loaded as
    engine = Engine(model, loaded.tokenizer, template, notes=loaded.notes, cache_folder=loaded.cache_folder)
    ways = {
        hf.PLAIN: hf.engine_way(engine, draft=False),
        hf.DRAFTED: hf.engine_way(engine, draft=True),
        hf.THEIRS: _theirs(model, loaded.tokenizer, template, None),
        hf.LOOKUP: _theirs(model, loaded.tokenizer, template, lookup),
    }
    if against is not None:
        native = Engine.load(replace(options.config(against, None), context_length=None, isa=isa))
        ways[hf.NATIVE] = hf.engine_way(native, draft=True)
    requests, _ = peer_requests(turns, lambda text: len(loaded.tokenizer.encode(text)))
    progress("warming up")
    for answer in ways.values():
        answer(WARM_UP)
    conditions = {
        **machine_conditions(),
        **{name: package_version(name) for name in PACKAGES},
        **model_conditions(model.info),
        "against": None if against is None else against.name,
        "lookup_tokens": lookup,
        "repeats": rounds,
        "edits": [turn.kind for turn in turns],
    }
    return conditions, hf.compare(ways, requests, rounds, progress, model.rerun_counts)


def _theirs(model: "HfModel", tokenizer: Tokenizer, template: str, draft: int | None) -> hf.Way:
    """transformers' own decoding, plainly or with `draft` looked-up tokens."""
    from editor_engine.models.hf.peer import generate  # torch, as above

    def answer(request: PeerRequest) -> hf.Reply:
        asked = CompletionRequest(request.messages, request.max_tokens)
        prompt = tokenise(asked, tokenizer, template).prompt
        most = min(request.max_tokens, model.info.context_length - len(prompt))
        done = generate(model, prompt, most, tokenizer.stop_ids, draft)
        return hf.Reply(done.ids, done.decode_s, done.passes)

    return answer
