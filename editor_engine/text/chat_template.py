"""Renders a conversation with the chat template that travels in the model file.

Knows Jinja and what templates may call; knows nothing of token ids. Invariants: what the template wrote and what the
messages contain are told apart by construction, so content never becomes a marker; the same messages give the same
prompt on any day (a template is not told the date).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NoReturn

import jinja2
from jinja2.exceptions import SecurityError

from editor_engine.errors import UnsupportedModelError
from editor_engine.requests import Message
from editor_engine.text.template_sandbox import Sandbox, limited
from editor_engine.text.tokenizer import Piece

FIRST_PLACEHOLDER = 0xF0000
"""Start of a private-use plane; characters from it stand for contents while a template runs."""

LONGEST_TEMPLATE = 128 << 10
"""Characters; those of real models have up to some 30,000, and one of 3 million takes seconds to be compiled."""


def refuse_long(template: str) -> None:
    """Raise UnsupportedModelError for a template that is too long to be one."""
    if len(template) > LONGEST_TEMPLATE:
        raise UnsupportedModelError(
            f"The model's chat template has {len(template)} characters, and at most {LONGEST_TEMPLATE} are read; use "
            "another model, or take a shorter template."
        )


def render_prompt(
    template: str, messages: Sequence[Message], prefill: str = "", *, bos: str = "", eos: str = ""
) -> list[Piece]:
    """The prompt up to where the reply goes on, `prefill` (the reply's opening, data) last.

    Templates see what transformers gives them (`messages`, `add_generation_prompt` true, `bos_token`, `eos_token`, no
    tools), with its white space rules. A template may add a system message of its own when there is none; it is in
    the pieces; one that knows no system message gets it within the user's. Raises UnsupportedModelError for a template
    that fails, leaves a message out, alters contents beyond stripping them, or is too long.
    """
    refuse_long(template)
    try:
        pieces = _pieces(template, messages, bos, eos)
    except UnsupportedModelError as error:
        merged = _without_system(messages)
        if merged is None or isinstance(error.__cause__, SecurityError):
            raise
        pieces = _pieces(template, merged, bos, eos)
    return [*pieces, Piece(prefill, special=False)] if prefill else pieces


def _without_system(messages: Sequence[Message]) -> list[Message] | None:
    """What a system message says, said at the head of the user's first: for templates that know no such role (Gemma).

    None where there is no such message or nobody to say it.
    """
    if len(messages) < 2 or messages[0].role != "system" or messages[1].role != "user":
        return None
    system, user, *rest = messages
    return [Message("user", f"{system.content}\n\n{user.content}"), *rest]


def _pieces(template: str, messages: Sequence[Message], bos: str, eos: str) -> list[Piece]:
    contents = [message.content for message in messages]
    seen = "".join([template, bos, eos, *contents, *(message.role for message in messages)])
    marks = _unused_characters(len(contents), seen)
    stand_ins = [mark if content else "" for mark, content in zip(marks, contents, strict=True)]
    # Models that think aloud first are asked not to: the reply is a file. Other templates do not look at it.
    variables = {"bos_token": bos, "eos_token": eos, "enable_thinking": False}
    expected = _render(template, messages, contents, variables)
    skeleton = _render(template, messages, stand_ins, variables)
    if not set(skeleton).issuperset(filter(None, stand_ins)):
        raise UnsupportedModelError("The model's chat template leaves out a message; use another model.")
    for values in (contents, [content.strip() for content in contents]):
        pieces = _fill(skeleton, dict(zip(marks, values, strict=True)))
        if "".join(piece.text for piece in pieces) == expected:
            return pieces
    raise UnsupportedModelError(
        "The model's chat template changes the text of messages, so files would not reach the model as they are; "
        "use another model."
    )


def _fill(skeleton: str, contents: dict[str, str]) -> list[Piece]:
    """`skeleton` as special pieces, each of its placeholders as a data piece of its content."""
    pieces: list[Piece] = []
    literal = ""
    for character in skeleton:
        content = contents.get(character)
        if content is None:
            literal += character
            continue
        if literal:
            pieces.append(Piece(literal, special=True))
            literal = ""
        pieces.append(Piece(content, special=False))
    if literal:
        pieces.append(Piece(literal, special=True))
    return pieces


def _unused_characters(count: int, text: str) -> list[str]:
    """`count` private-use characters that are not in `text`."""
    taken = set(text)
    found: list[str] = []
    code = FIRST_PLACEHOLDER
    while len(found) < count:
        if chr(code) not in taken:
            found.append(chr(code))
        code += 1
    return found


def _render(
    template: str, messages: Sequence[Message], contents: Sequence[str], variables: Mapping[str, object]
) -> str:
    """The template's text for `messages` with their contents replaced by `contents`."""
    conversation = [
        {"role": message.role, "content": content} for message, content in zip(messages, contents, strict=True)
    ]
    try:
        with limited():
            return _compile(template).render(
                messages=conversation, tools=None, documents=None, add_generation_prompt=True, **variables
            )
    except Exception as error:  # a template is foreign code: what it raises has no bound
        why = str(error).strip().rstrip(".") or type(error).__name__
        raise UnsupportedModelError(f"The model's chat template cannot be used: {why}.") from error


@lru_cache(maxsize=4)
def _compile(template: str) -> jinja2.Template:
    environment = Sandbox()
    environment.globals["raise_exception"] = _raise_exception
    return environment.from_string(template)


def _raise_exception(message: str) -> NoReturn:
    """For templates that refuse a conversation, for instance one that does not alternate."""
    raise jinja2.TemplateError(message)
