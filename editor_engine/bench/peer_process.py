"""One engine in a process of its own: a job goes in as JSON, one reply per request comes out.

Both ends of the pipe are here; what an engine does with a job is in `peer_redraft` and `peer_llamacpp`. Invariant: the
process is gone when `run_job` returns or raises, so two engines are never in memory while one of them is timed; it ends
by itself when its parent is gone, killed -9 or not.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, TextIO

from editor_engine.errors import EngineError
from editor_engine.machine import peak_rss_bytes
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
    peak_rss_bytes: int | None = None
    """Peak resident bytes of the engine's process so far; None where it did not say."""

    @property
    def decode_tok_s(self) -> float | None:
        """Output tokens after the first over the time they took."""
        return (self.output_tokens - 1) / self.decode_s if self.decode_s else None


WARM_UP = PeerRequest((Message("user", "Write one line of Python that prints the word ready."),), 8)
"""Answered first and not counted: it touches every weight."""


TIME_OUT_S = 3600.0
"""Seconds after which an engine is taken to hang; a job of ten edits takes minutes."""


def run_job(module: str, job: PeerJob, time_out_s: float = TIME_OUT_S) -> list[PeerReply]:
    """Run `python -m module` on a job. Raises PeerFailedError when the process fails or gives no answer in time.

    ctrl-C in this process, or any error, ends the other one.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as talk, tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=out, stderr=talk)
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # it is dead already; why is said below
                process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
                process.stdin.flush()
            process.wait(time_out_s)  # the pipe stays open meanwhile: its end tells the process that we are gone
        except subprocess.TimeoutExpired as error:
            words = f"The engine process {module} ({job.mode}) gave no answer within {time_out_s:g} s and was ended."
            raise PeerFailedError(words) from error
        finally:
            process.kill()
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        out.seek(0)
        talk.seek(0)
        lines = out.read().splitlines()
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
    job = sys.stdin.readline()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        for reply in answer(parse_job(json.loads(job))):
            results.write(json.dumps(asdict(replace(reply, peak_rss_bytes=peak_rss_bytes()))) + "\n")
        results.flush()
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _end_with_parent() -> None:
    """Wait for the end of stdin, which the parent holds open for as long as it lives.

    Engines let go of Python's lock while they work, so this is seen within a pass.
    """
    while os.read(0, 4096):
        pass
    os._exit(1)


def parse_job(tree: Any) -> PeerJob:
    """A job from its JSON."""
    requests = tuple(
        PeerRequest(tuple(Message(**message) for message in item["messages"]), item["max_tokens"], item["source"])
        for item in tree["requests"]
    )
    return PeerJob(tree["model"], tree["mode"], tree["threads"], tree["context"], tree["isa"], requests)
