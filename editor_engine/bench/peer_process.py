"""One engine in a process of its own: a job goes in as JSON, one reply per request comes out.

Both ends of the pipe are here; what an engine does with a job is in `peer_redraft` and `peer_llamacpp`. Invariant: the
process is gone when `run_job` returns or raises, so two engines are never in memory while one of them is timed.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TextIO

from editor_engine.errors import EngineError
from editor_engine.requests import Message


class PeerFailedError(EngineError):
    """An engine's process died, or gave no figures; the sentence has its last words."""


@dataclass(frozen=True)
class PeerRequest:
    """One greedy completion asked of any engine."""

    messages: tuple[Message, ...]
    max_tokens: int
    """Most output tokens, at least 2: a rate needs two emissions."""
    source: str = ""
    """What ours may copy from; no other engine knows such a thing, it sees the same text in the messages."""


@dataclass(frozen=True)
class PeerJob:
    """Load one model, warm up, answer every request in order."""

    model: str
    """Path of the GGUF file."""
    mode: str
    """How to decode: ours `plain` or `drafted`, llama.cpp's n-gram modes or `none`."""
    threads: int
    context: int
    """Tokens the KV cache must hold."""
    isa: str
    """Kernel variant of ours; another engine takes what it was built for."""
    requests: tuple[PeerRequest, ...]


@dataclass(frozen=True)
class PeerReply:
    """Figures of one request, by the definitions of the benchmark."""

    prompt_tokens: int
    cached_tokens: int
    """Prompt tokens that were in the cache and not computed; the prefill rate leaves them out."""
    prefill_tok_s: float | None
    output_tokens: int
    decode_s: float | None
    """First to last emission; None when there was only one."""
    drafted: int
    accepted: int
    digest: str
    """SHA-256 of the output, as token ids or text; comparable within one engine."""

    @property
    def decode_tok_s(self) -> float | None:
        """Output tokens after the first over the time they took."""
        return (self.output_tokens - 1) / self.decode_s if self.decode_s else None


WARM_UP = PeerRequest((Message("user", "Write one line of Python that prints the word ready."),), 8)
"""Answered first and not counted: it touches every weight."""


def run_job(module: str, job: PeerJob) -> list[PeerReply]:
    """Run `python -m module` on a job. Raises PeerFailedError when the process fails.

    ctrl-C in this process, or any error, ends the other one.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as talk:
        process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=talk, text=True
        )
        try:
            out, _ = process.communicate(json.dumps(asdict(job)))
        finally:
            process.kill()
            process.wait()
        talk.seek(0)
        lines = out.splitlines()
        if process.returncode or len(lines) != len(job.requests):
            last = [line for line in talk.read().splitlines() if line.strip()][-1:] or ["it said nothing"]
            raise PeerFailedError(f"The engine process {module} ({job.mode}) failed: {last[0].strip()}")
    return [PeerReply(**json.loads(line)) for line in lines]


def serve(answer: Callable[[PeerJob], Iterator[PeerReply]]) -> int:
    """The process's side: read the job from stdin, write a line per reply, say a failure in one sentence.

    Whatever a library prints to the standard output goes to stderr instead. Returns the exit code.
    """
    results: TextIO = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        for reply in answer(parse_job(json.load(sys.stdin))):
            results.write(json.dumps(asdict(reply)) + "\n")
        results.flush()
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def parse_job(tree: Any) -> PeerJob:
    """A job from its JSON."""
    requests = tuple(
        PeerRequest(tuple(Message(**message) for message in item["messages"]), item["max_tokens"], item["source"])
        for item in tree["requests"]
    )
    return PeerJob(tree["model"], tree["mode"], tree["threads"], tree["context"], tree["isa"], requests)
