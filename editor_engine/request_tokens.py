"""A request in the model's own tokens: the chat prompt with the reply's opening, and the source that the reply follows.

Knows the chat template and the tokenizer; nothing of models or of decoding. Invariant: what a message or the source
contains never becomes a marker of the template.
"""

from dataclasses import dataclass

from editor_engine.errors import RequestError
from editor_engine.requests import CompletionRequest
from editor_engine.text.chat_template import render_prompt
from editor_engine.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenisedRequest:
    """A request in the model's own tokens."""

    prompt: list[int]
    """Chat prompt and the reply's opening."""
    source: list[int]
    """The source as it would be emitted right after the prompt."""
    source_lines: list[int]
    """1-based line in the user's file of each source token."""


def tokenise(request: CompletionRequest, tokenizer: Tokenizer, template: str) -> TokenisedRequest:
    """Render the chat template and tokenise prompt and source. Raises RequestError for a request without sense."""
    if not request.messages:
        raise RequestError("A request needs at least one message.")
    if not (0 <= request.temperature < float("inf") and request.seed >= 0 and request.max_tokens >= 0):
        raise RequestError("Temperature, seed and max_tokens of a request must be finite and not negative.")
    if not all(request.stop):
        raise RequestError("A stop text cannot be empty.")
    bos = "" if tokenizer.bos_id is None else tokenizer.token_bytes(tokenizer.bos_id).decode()
    eos = tokenizer.token_bytes(tokenizer.eos_id).decode()
    pieces = render_prompt(template, request.messages, request.prefill, bos=bos, eos=eos)
    prompt = tokenizer.encode_pieces(pieces)
    source = tokenizer.encode_continuation(prompt, request.prefill, request.source)
    lines = [request.source_line + line for line in tokenizer.line_of_token(source)]
    return TokenisedRequest(prompt, source, lines)
