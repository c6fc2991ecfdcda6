"""Which server answers, what it can do, and how it wants to be asked.

Knows `redraft serve`, vLLM, SGLang, llama-server and Ollama; the list of models names the program (`owned_by`), and
nothing is guessed from the address. What each of them does is in docs/engines.md. Invariant: a server that is none of
these is asked for completions as OpenAI describes them, and can do no more than that.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from app.clients.exchange import Exchange, RefusedError
from app.engine_client import Capabilities
from app.errors import EngineUnreachableError, ModelError
from editor_engine.errors import ProtocolError
from editor_engine.requests import CompletionRequest
from editor_engine.wire import EngineIdentity, extension_to_json, identity_from_json


class Kind(StrEnum):
    """The program behind an address."""

    REDRAFT = "redraft serve"
    VLLM = "vLLM"
    SGLANG = "SGLang"
    LLAMA = "llama-server"
    OLLAMA = "Ollama"
    OTHER = "an OpenAI-compatible server"


_OWNERS = {
    "redraft": Kind.REDRAFT,
    "vllm": Kind.VLLM,
    "sglang": Kind.SGLANG,
    "llamacpp": Kind.LLAMA,
    "library": Kind.OLLAMA,
}

_CAPABILITIES = {
    Kind.REDRAFT: Capabilities(),
    Kind.VLLM: Capabilities(prediction=False),
    Kind.SGLANG: Capabilities(tokenise=False, prediction=False),
    Kind.LLAMA: Capabilities(prediction=False),
    Kind.OLLAMA: Capabilities(prefill=False, tokenise=False, region=False, prediction=False),
    Kind.OTHER: Capabilities(prefill=False, tokenise=False, region=False, prediction=True),
}


@dataclass(frozen=True)
class Server:
    """What is known of a server once it was asked."""

    kind: Kind
    model: str
    """As requests name it."""
    context: int | None
    """Tokens that prompt and reply share; None where it does not say."""
    identity: EngineIdentity | None = None
    """Of `redraft serve`."""

    @property
    def capabilities(self) -> Capabilities:
        """Of its kind."""
        return _CAPABILITIES[self.kind]


async def recognise(exchange: Exchange, model: str | None) -> Server:
    """Ask a server what it is; `model` is the one wanted, None takes the only one it has.

    Raises EngineUnreachableError when nobody answers, ModelError when the model is not there or must be named.
    """
    listed = await exchange.get(f"{exchange.place.api}/models")
    models = _models(listed)
    if models is None:
        if model is None:
            raise EngineUnreachableError(
                f"{exchange.place.shown} lists no models, so it may be no OpenAI-compatible server; if it is one, name "
                "the model with --model."
            )
        return Server(Kind.OTHER, model, None)
    entry = _entry(models, model, exchange.place.shown)
    name = str(entry["id"])
    kind = _OWNERS.get(str(entry.get("owned_by")), Kind.OTHER)
    if kind is Kind.OTHER and await _is_ollama(exchange):
        kind = Kind.OLLAMA
    if kind is Kind.REDRAFT:
        identity = await _identity(exchange)
        return Server(kind, name, identity.context_length, identity)
    if kind is Kind.OLLAMA:
        return Server(kind, name, await _loaded_by_ollama(exchange, name))
    if kind is Kind.LLAMA:
        return Server(kind, name, await _slot_of_llama(exchange) or _whole(_at(entry, "meta", "n_ctx")))
    return Server(kind, name, _whole(entry.get("max_model_len")))


def chat_body(server: Server, request: CompletionRequest) -> dict[str, Any]:
    """The request in this server's dialect, without what a stream needs."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    body: dict[str, Any] = {"model": server.model, "messages": messages}
    body |= {"max_tokens": request.max_tokens, "temperature": request.temperature, "seed": request.seed}
    if server.kind is Kind.REDRAFT:
        return {**body, "stop": list(request.stop), "redraft": extension_to_json(request)}
    # None of them has a request without an output token.
    body |= {"max_tokens": max(request.max_tokens, 1)}
    opened = bool(request.prefill) and server.capabilities.prefill
    # Our closing fence as a line of its own: the server ends by itself and so reports its figures.
    ends = [*request.stop, *([f"\n{request.stop_line}\n"] if opened and request.stop_line else [])]
    if ends:
        body["stop"] = ends
    if opened:
        messages.append({"role": "assistant", "content": request.prefill})
        # A model that thinks first could not go on from our opening; llama-server refuses it then.
        body["chat_template_kwargs"] = {"enable_thinking": False}
        if server.kind is not Kind.LLAMA:  # which goes on with a last message of the assistant's by itself
            body |= {"continue_final_message": True, "add_generation_prompt": False}
    if server.kind is Kind.LLAMA:
        body |= {"return_progress": True, "timings_per_token": True}
    if request.source and request.draft:
        body["prediction"] = {"type": "content", "content": request.source}
    return body


async def counted(exchange: Exchange, server: Server, request: CompletionRequest) -> tuple[int, int] | None:
    """(prompt tokens, source tokens) by the server's own tokeniser; None where it has none for us."""
    root = exchange.place.root
    body = chat_body(server, request)
    if server.kind is Kind.REDRAFT:
        answer = await exchange.ask(f"{exchange.place.api}/redraft/count", body)
        return _pair(_at(answer, "prompt_tokens"), _at(answer, "source_tokens"))
    if server.kind is Kind.LLAMA:
        rendered = await exchange.ask(f"{root}/apply-template", body)
        prompt = await _count_of_llama(exchange, _at(rendered, "prompt"), special=True)
        return _pair(prompt, await _count_of_llama(exchange, request.source, special=False))
    if server.kind is Kind.VLLM:
        chat = await exchange.ask(f"{root}/tokenize", body)
        text = {"model": server.model, "prompt": request.source, "add_special_tokens": False}
        source = await exchange.ask(f"{root}/tokenize", text) if request.source else {"count": 0}
        return _pair(_at(chat, "count"), _at(source, "count"))
    return None


async def _count_of_llama(exchange: Exchange, text: object, *, special: bool) -> int | None:
    if not isinstance(text, str):
        return None
    body = {"content": text, "add_special": special, "parse_special": special}
    answer = await exchange.ask(f"{exchange.place.root}/tokenize", body)
    tokens = _at(answer, "tokens")
    return len(tokens) if isinstance(tokens, list) else None


async def _identity(exchange: Exchange) -> EngineIdentity:
    health = await exchange.get(f"{exchange.place.root}/health")
    if _at(health, "status") == "loading":
        raise EngineUnreachableError(
            f"The engine at {exchange.place.shown} is still loading its model; try again in a moment."
        )
    try:
        return identity_from_json(_at(health, "engine"))
    except ProtocolError as error:
        raise EngineUnreachableError(str(error)) from error


async def _slot_of_llama(exchange: Exchange) -> int | None:
    """What one request may use of the context, which llama-server divides among its slots."""
    try:
        props = await exchange.get(f"{exchange.place.root}/props")
    except RefusedError:  # it may be switched off: the model's entry has a figure, too
        return None
    return _whole(_at(props, "default_generation_settings", "n_ctx"))


async def _is_ollama(exchange: Exchange) -> bool:
    """It names the owner of a model that a user made after the user."""
    try:
        return isinstance(_at(await exchange.get(f"{exchange.place.root}/api/version"), "version"), str)
    except RefusedError:
        return False


async def _loaded_by_ollama(exchange: Exchange, model: str) -> int | None:
    """Have the model loaded, and say how long its context then is: what the model could hold says nothing about it."""
    root = exchange.place.root
    await exchange.ask(f"{root}/api/generate", {"model": model, "stream": False})
    running = await exchange.get(f"{root}/api/ps")
    entries = _at(running, "models")
    for entry in entries if isinstance(entries, list) else []:
        if model in (_at(entry, "name"), _at(entry, "model")):
            return _whole(_at(entry, "context_length"))
    return None


def _models(listed: object) -> list[dict[str, Any]] | None:
    data = _at(listed, "data")
    if not isinstance(data, list):
        return None
    return [entry for entry in data if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _entry(models: list[dict[str, Any]], wanted: str | None, place: str) -> dict[str, Any]:
    names = ", ".join(sorted(entry["id"] for entry in models)[:20]) or "none"
    if wanted is None:
        if len(models) != 1:
            raise ModelError(f"The engine at {place} has several models or none; name one with --model: {names}.")
        return models[0]
    for entry in models:
        aliases = entry.get("aliases")
        if wanted == entry["id"] or wanted in (aliases if isinstance(aliases, list) else []):
            return entry
    tagged = [entry for entry in models if entry["id"] == f"{wanted}:latest"]  # Ollama's name for a name without a tag
    if tagged:
        return tagged[0]
    raise ModelError(f"The engine at {place} has no model {wanted!r}; it has: {names}.")


def _at(data: object, *path: str) -> Any:
    """What lies at a path of names; None where there is no such thing."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _pair(prompt: object, source: object) -> tuple[int, int] | None:
    if isinstance(prompt, int) and isinstance(source, int):
        return prompt, source
    return None
