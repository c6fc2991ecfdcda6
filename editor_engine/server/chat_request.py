"""A chat completion as OpenAI describes it, with the `redraft` object of ours, and what it asks of the engine.

Knows the fields and their meaning, nothing of HTTP. Fields of OpenAI that this engine cannot serve are accepted at the
value that asks for nothing, and refused otherwise. Invariant: a body that is accepted is served as it reads; nothing
in it is passed over.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from editor_engine.requests import CompletionRequest, Message
from editor_engine.server.faults import ServerFault

_AS_LONG_AS_FITS = 2**31 - 1
"""The engine ends every reply at the end of its context."""
_Count = Annotated[int, Field(ge=0, le=_AS_LONG_AS_FITS)]
_Zero = Annotated[float, Field(ge=0, le=0)]
_One = Annotated[float, Field(ge=1, le=1)]
_Label = Annotated[str, Field(max_length=512)]
"""For whoever keeps the client's books: accepted, and of no effect here."""


def _whole_text(text: str) -> str:
    """JSON can spell half a character; no file has one and no tokenizer takes it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start + 1} is half of a surrogate pair") from None
    return text


_Text = Annotated[str, AfterValidator(_whole_text)]
_StopText = Annotated[_Text, Field(min_length=1, max_length=1024)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class TextPart(_Strict):
    """A piece of a message."""

    type: Literal["text"]
    text: _Text


Content = _Text | list[TextPart]


class ChatMessage(_Strict):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant"]
    content: Content
    name: None = None
    refusal: None = None
    tool_calls: Annotated[list[Any], Field(max_length=0)] | None = None


class Prediction(_Strict):
    """Text that the reply is expected to follow."""

    type: Literal["content"]
    content: Content


class StreamOptions(_Strict):
    """What a stream carries besides the text."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


class ResponseFormat(_Strict):
    """Only plain text."""

    type: Literal["text"]


class RedraftObject(_Strict):
    """What OpenAI's fields cannot say: how the reply opens and ends, and which text it follows.

    With it, a stream carries the engine's events, each under `redraft` of its chunk.
    """

    prefill: _Text = Field(default="", description="Opening of the reply: part of the prompt, never output.")
    source: _Text = Field(default="", description="Text the reply is expected to follow; the same as `prediction`.")
    source_line: int = Field(
        default=1, ge=1, le=2**31 - 1, description="1-based line of the source's first line in its file."
    )
    stop_line: _Text | None = Field(default=None, description="The first output line equal to it ends the reply.")
    anchor: list[_Text] = Field(default=[], description="Lines that, emitted one after the other, end the reply.")
    anchor_blank_lines: _Count = Field(
        default=0, description="Blank lines right before the anchor that are dropped with it."
    )
    score: bool = Field(default=False, description="Report the mean log-likelihood of the output.")
    draft: bool = Field(default=True, description="Off decodes plainly: the same output, slower.")
    fidelity: Literal["strict"] = Field(default="strict", description="The output is the model's own, token for token.")


class ChatBody(_Strict):
    """POST /v1/chat/completions."""

    model: str = Field(description="Id of the model that is served.")
    messages: list[ChatMessage] = Field(min_length=1)
    max_tokens: _Count | None = Field(default=None, description="Most tokens of the reply; 0 only prefills.")
    max_completion_tokens: _Count | None = Field(default=None, description="The same as `max_tokens`.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Without it, 0: greedy.")
    seed: int | None = Field(default=None, ge=-(2**63), le=2**63 - 1)
    stop: _StopText | Annotated[list[_StopText], Field(max_length=16)] | None = Field(
        default=None, description="Text that ends the reply and is dropped."
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    prediction: Prediction | None = None
    redraft: RedraftObject | None = None

    user: _Label | None = None
    safety_identifier: _Label | None = None
    prompt_cache_key: _Label | None = None
    metadata: dict[_Label, _Label] | None = None

    n: Annotated[int, Field(ge=1, le=1)] | None = None
    top_p: _One | None = None
    frequency_penalty: _Zero | None = None
    presence_penalty: _Zero | None = None
    logit_bias: Annotated[dict[str, Any], Field(max_length=0)] | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = None
    tool_choice: Literal["none"] | None = None
    parallel_tool_calls: Literal[True] | None = None
    functions: Annotated[list[Any], Field(max_length=0)] | None = None
    function_call: Literal["none"] | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1, max_length=1)] | None = None
    audio: None = None
    store: Literal[False] | None = None
    service_tier: Literal["auto", "default"] | None = None
    reasoning_effort: None = None
    verbosity: Literal["medium"] | None = None
    web_search_options: None = None

    def to_request(self) -> CompletionRequest:
        """What the engine is asked. Raises ServerFault (400) where fields contradict each other."""
        if self.stream_options is not None and not self.stream:
            raise _contradiction("stream_options", "`stream_options` is for streams; set `stream` with it.")
        extension = self.redraft or RedraftObject()
        return CompletionRequest(
            messages=tuple(Message(_role(message.role), _text(message.content)) for message in self.messages),
            max_tokens=self._max_tokens(),
            prefill=extension.prefill,
            source=self._source(extension),
            source_line=extension.source_line,
            stop_line=extension.stop_line,
            anchor=tuple(extension.anchor),
            anchor_blank_lines=extension.anchor_blank_lines,
            stop=(self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ()),
            temperature=self.temperature or 0.0,
            seed=(self.seed or 0) % 2**64,
            score=extension.score,
            draft=extension.draft,
        )

    @property
    def wants_usage(self) -> bool:
        """A stream ends with a chunk of figures."""
        return bool(self.stream_options and self.stream_options.include_usage)

    def _max_tokens(self) -> int:
        named = {value for value in (self.max_tokens, self.max_completion_tokens) if value is not None}
        if len(named) > 1:
            raise _contradiction("max_tokens", "`max_tokens` and `max_completion_tokens` differ; give one of them.")
        return min(named, default=_AS_LONG_AS_FITS)

    def _source(self, extension: RedraftObject) -> str:
        predicted = _text(self.prediction.content) if self.prediction else ""
        if predicted and extension.source and predicted != extension.source:
            raise _contradiction("prediction", "`prediction` and `redraft.source` differ; give one of them.")
        return extension.source or predicted


def _contradiction(param: str, message: str) -> ServerFault:
    return ServerFault(400, "request", message, param=param)


def _role(role: str) -> str:
    # OpenAI's newer name for the system message; chat templates know the older one only.
    return "system" if role == "developer" else role


def _text(content: Content) -> str:
    return content if isinstance(content, str) else "".join(part.text for part in content)
