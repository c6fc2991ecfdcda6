"""Our own engine as a peer: `python -m editor_engine.bench.peer_redraft` answers one job (`peer_process`).

Modes: `plain` and `drafted`. Invariant: both go through `Engine.complete`, as an edit does.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from editor_engine.bench.completed import completed
from editor_engine.bench.peer_process import WARM_UP, PeerJob, PeerReply, PeerRequest, serve
from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.errors import RequestError
from editor_engine.requests import CompletionRequest

PLAIN, DRAFTED = "plain", "drafted"


def answer(job: PeerJob) -> Iterator[PeerReply]:
    """Load, warm up, answer. Raises what `Engine` raises, RequestError for a mode we do not have."""
    if job.mode not in (PLAIN, DRAFTED):
        raise RequestError(f"Our engine has no mode {job.mode!r}; it has {PLAIN} and {DRAFTED}.")
    config = EngineConfig(model_path=Path(job.model), threads=job.threads, context_length=job.context, isa=job.isa)
    engine = Engine.load(config)
    _complete(engine, WARM_UP, draft=False)
    for request in job.requests:
        yield _complete(engine, request, draft=job.mode == DRAFTED)


def _complete(engine: Engine, request: PeerRequest, draft: bool) -> PeerReply:
    completion = CompletionRequest(request.messages, request.max_tokens, source=request.source, draft=draft)
    last = completed(engine, completion)
    stats, emitted = last.stats, len(last.token_ids)
    return PeerReply(
        prompt_tokens=stats.prompt_tokens or 0,  # never None: it is our own engine that counts
        cached_tokens=stats.cached_tokens or 0,
        prefill_tok_s=stats.prefill_tok_s,
        output_tokens=emitted,
        decode_s=None if stats.decode_tok_s is None else (emitted - 1) / stats.decode_tok_s,
        drafted=stats.drafted or 0,
        accepted=stats.accepted or 0,
        digest=hashlib.sha256(" ".join(map(str, last.token_ids)).encode()).hexdigest(),
    )


if __name__ == "__main__":
    sys.exit(serve(answer))
