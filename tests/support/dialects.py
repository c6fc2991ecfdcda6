"""Servers of other programs, as far as our client meets them, without a model: each answers in its own dialect.

NOT recordings of those programs: vLLM, SGLang and Ollama are written from their public sources and documentation
(vLLM: entrypoints/openai protocol and docs/features/speculative_decoding; Ollama: openai/openai.go, docs/api.md and
docs/faq on the context), llama-server also from what the real one of `llama_server.py` sends. A reply is a text; a
token is a word or one other character.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")

Say = Callable[[dict[str, Any]], str]
"""The reply to a request's body."""


def tokens_of(text: str) -> list[str]:
    """Words, runs of blanks, and single characters of everything else."""
    return _TOKEN.findall(text)


def event(data: object) -> bytes:
    """One server-sent event."""
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


class Pieces(httpx2.AsyncByteStream):
    """A body that comes piece by piece; an Event in it is waited for, an error raised."""

    def __init__(self, pieces: list[bytes | asyncio.Event | Exception]) -> None:
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            elif isinstance(piece, Exception):
                raise piece
            else:
                await asyncio.sleep(0)
                yield piece

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class Dialect:
    """One server. `say` is what its model replies."""

    owner: str
    say: Say
    model: str = "m"
    context: int = 8192
    entry: dict[str, Any] = field(default_factory=dict)
    """More of the model's entry in the list."""
    pages: dict[str, object] = field(default_factory=dict)
    """Other addresses and what they answer: JSON, or text."""
    refusals: list[httpx2.Response | Exception] = field(default_factory=list)
    """What the next completions get instead of an answer, first one first."""
    stream: list[bytes | asyncio.Event | Exception] | None = None
    """The body of a completion, in place of the dialect's own."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """Of completions, in order."""
    asked: list[str] = field(default_factory=list)
    """Paths, in order."""
    headers: list[httpx2.Headers] = field(default_factory=list)
    streams: list[Pieces] = field(default_factory=list)
    usage: Callable[[list[str], list[str]], dict[str, Any]] | None = None
    """(prompt tokens, output tokens) -> fields of the last chunk; None leaves the figures out."""

    def transport(self) -> httpx2.MockTransport:
        """For an Exchange."""
        return httpx2.MockTransport(self.answer)

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request."""
        path = request.url.path
        self.asked.append(path)
        self.headers.append(request.headers)
        if path == "/v1/models":
            entry = {"id": self.model, "object": "model", "owned_by": self.owner, **self.entry}
            return httpx2.Response(200, json={"object": "list", "data": [entry]})
        if path == "/v1/chat/completions":
            return self._complete(json.loads(request.content))
        if path in self.pages:
            page = self.pages[path]
            body = json.loads(request.content) if request.content else {}
            page = page(body) if callable(page) else page
            return httpx2.Response(200, text=page) if isinstance(page, str) else httpx2.Response(200, json=page)
        return httpx2.Response(404, json={"detail": "Not Found"})

    def _complete(self, body: dict[str, Any]) -> httpx2.Response:
        self.bodies.append(body)
        if self.refusals:
            refusal = self.refusals.pop(0)
            if isinstance(refusal, Exception):
                raise refusal
            return refusal
        pieces = Pieces(self._pieces(body) if self.stream is None else self.stream)
        self.streams.append(pieces)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=pieces)

    def _pieces(self, body: dict[str, Any]) -> list[bytes | asyncio.Event | Exception]:
        text = self.say(body)
        for stop in body.get("stop") or []:
            text = text.partition(stop)[0]
        said, reason = tokens_of(text), "stop"
        most = body.get("max_tokens", body.get("max_completion_tokens"))
        if len(said) > most:
            said, reason = said[:most], "length"
        prompt = [token for message in body["messages"] for token in tokens_of(message["content"])]
        chunks = [event(chunk({"role": "assistant", "content": ""}))]
        chunks += [event(chunk({"content": token})) for token in said]
        chunks.append(event(chunk({}, reason)))
        if self.usage is not None:
            chunks.append(event({**chunk(None), **self.usage(prompt, said)}))
        return [*chunks, event("[DONE]")]


def chunk(delta: dict[str, Any] | None, reason: str | None = None) -> dict[str, Any]:
    """A chunk of a stream; without a delta, one without choices."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}


def openai_usage(prompt: list[str], output: list[str]) -> dict[str, Any]:
    """Counts as OpenAI words them."""
    return {"usage": {"prompt_tokens": len(prompt), "completion_tokens": len(output), "total_tokens": 0}}


def vllm(say: Say) -> Dialect:
    """vLLM: continues a final message on request, tokenises, drafts."""

    def usage(prompt: list[str], output: list[str]) -> dict[str, Any]:
        spec = {"num_spec_steps": 3, "num_accepted_draft_tokens": 10, "num_draft_tokens": 12, "num_spec_tokens": 4}
        return {**openai_usage(prompt, output), "metrics": {"speculative_decoding": spec}}

    def tokenize(body: dict[str, Any]) -> dict[str, Any]:
        texts = [message["content"] for message in body["messages"]] if "messages" in body else [body["prompt"]]
        count = sum(len(tokens_of(text)) for text in texts)
        return {"count": count, "max_model_len": 8192, "tokens": [0] * count, "token_strs": None}

    pages = {"/tokenize": tokenize, "/version": {"version": "0.32.0"}}
    return Dialect("vllm", say, entry={"max_model_len": 8192, "root": "m"}, pages=pages, usage=usage)


def sglang(say: Say) -> Dialect:
    """SGLang: continues a final message on request; figures as OpenAI's."""
    return Dialect("sglang", say, entry={"max_model_len": 8192}, usage=openai_usage)


def llama(say: Say) -> Dialect:
    """llama-server: goes on with a last message of the assistant's, reports timings, renders and tokenises."""

    def usage(prompt: list[str], output: list[str]) -> dict[str, Any]:
        timings = {"cache_n": 4, "prompt_n": len(prompt) - 4, "prompt_ms": 100.0, "prompt_per_second": 400.0}
        timings |= {"predicted_n": len(output), "predicted_ms": 500.0, "draft_n": 21, "draft_n_accepted": 13}
        details = {"prompt_tokens_details": {"cached_tokens": 4}}
        return {"usage": {**openai_usage(prompt, output)["usage"], **details}, "timings": timings}

    pages: dict[str, object] = {
        "/props": {"default_generation_settings": {"n_ctx": 2048}, "total_slots": 2},
        "/apply-template": lambda body: {"prompt": " ".join(message["content"] for message in body["messages"])},
        "/tokenize": lambda body: {"tokens": list(range(len(tokens_of(body["content"]))))},
    }
    return Dialect("llamacpp", say, entry={"meta": {"n_ctx": 4096}, "aliases": ["alias"]}, pages=pages, usage=usage)


def ollama(say: Say, context: int = 4096) -> Dialect:
    """Ollama: opens no replies, and cuts a prompt that is too long without a word."""

    def usage(prompt: list[str], output: list[str]) -> dict[str, Any]:
        return openai_usage(prompt[:context], output)

    running = {"models": [{"name": "m:latest", "model": "m:latest", "context_length": context}]}
    pages = {"/api/version": {"version": "0.32.9"}, "/api/ps": running, "/api/generate": {"done": True, "response": ""}}
    return Dialect("library", say, model="m:latest", pages=dict(pages), usage=usage)


def cloud(say: Say) -> Dialect:
    """OpenAI itself: takes predictions and says what it used of them."""

    def usage(prompt: list[str], output: list[str]) -> dict[str, Any]:
        details = {"accepted_prediction_tokens": 9, "rejected_prediction_tokens": 3}
        return {"usage": {**openai_usage(prompt, output)["usage"], "completion_tokens_details": details}}

    return Dialect("system", say, usage=usage)
