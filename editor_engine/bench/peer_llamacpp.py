"""llama.cpp as a peer: `python -m editor_engine.bench.peer_llamacpp` answers one job (`peer_process`).

Uses the package `xllamacpp`, which brings llama.cpp prebuilt. Modes: `none` and its n-gram drafters, each with
llama.cpp's own defaults. Invariant: same file, messages, threads and greedy choice as ours; nothing is cached between
requests; times are llama.cpp's own.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from editor_engine.bench.peer_process import WARM_UP, PeerFailedError, PeerJob, PeerReply, PeerRequest, serve
from editor_engine.errors import RequestError

PACKAGE = "xllamacpp"
NO_DRAFTS = "none"
MODES = (NO_DRAFTS, "ngram_simple", "ngram_map_k", "ngram_map_k4v", "ngram_mod", "ngram_cache")


def require_package() -> None:
    """Raises RequestError with the command that installs the package when it is missing."""
    if find_spec(PACKAGE) is None:
        raise RequestError(
            f"llama.cpp is not here to compare with; `{sys.executable} -m pip install {PACKAGE}` gets it."
        )


def require_modes(modes: Iterable[str]) -> None:
    """Raises RequestError for a mode that llama.cpp does not have."""
    for mode in modes:
        if mode not in MODES:
            raise RequestError(f"llama.cpp has no mode {mode!r}; it has {', '.join(MODES)}.")


def answer(job: PeerJob) -> Iterator[PeerReply]:
    """Load, warm up, answer. Raises RequestError for an unknown mode or a missing package."""
    require_modes([job.mode])
    require_package()
    import xllamacpp  # an extra; only this process needs it

    parameters = xllamacpp.CommonParams()
    parameters.model.path = job.model
    parameters.n_ctx = job.context
    parameters.n_gpu_layers = 0
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = job.threads
    parameters.cpuparams_batch.n_threads = job.threads
    parameters.verbosity = 0
    if job.mode != NO_DRAFTS:
        kind = f"COMMON_SPECULATIVE_TYPE_{job.mode.upper()}"
        parameters.speculative.types = [getattr(xllamacpp.common_speculative_type, kind)]
    server = xllamacpp.Server(parameters)
    _complete(server, WARM_UP)
    for request in job.requests:
        yield _complete(server, request)


def _complete(server: Any, request: PeerRequest) -> PeerReply:
    answer = server.handle_chat_completions(
        {
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "temperature": 0,
            "max_tokens": request.max_tokens,
            "cache_prompt": False,
            "stream": False,
        }
    )
    tree = json.loads(answer) if isinstance(answer, (str, bytes)) else answer
    if "choices" not in tree:
        raise PeerFailedError(f"llama.cpp refused the request: {json.dumps(tree.get('error', tree))}.")
    return reply_of(tree["choices"][0]["message"]["content"], tree["timings"])


def reply_of(text: str, timings: Mapping[str, Any]) -> PeerReply:
    """llama.cpp's timings under our definitions.

    Its `predicted_ms` runs from the first token to the last, yet its `predicted_per_second` counts the first one too;
    ours does not (`PeerReply.decode_tok_s`).
    """
    decoded = int(timings["predicted_n"])
    return PeerReply(
        prompt_tokens=int(timings["prompt_n"]),
        cached_tokens=0,
        prefill_tok_s=timings["prompt_n"] / timings["prompt_ms"] * 1000 if timings["prompt_ms"] else None,
        output_tokens=decoded,
        decode_s=timings["predicted_ms"] / 1000 if decoded > 1 else None,
        drafted=int(timings.get("draft_n", 0)),
        accepted=int(timings.get("draft_n_accepted", 0)),
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )


if __name__ == "__main__":
    sys.exit(serve(answer))
