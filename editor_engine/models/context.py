"""How many tokens a cache is made for. Light; the same rule for every kind of model."""

from typing import Protocol

from editor_engine.errors import OptionError

MAX_CONTEXT = 32768
"""Most tokens of context unless the caller asks for more."""


class Limited(Protocol):
    """A model that was made for so many tokens."""

    @property
    def name(self) -> str: ...

    @property
    def context_length(self) -> int: ...


def context_of(model: Limited, wanted: int | None) -> int:
    """Tokens of KV cache for a caller that asked for `wanted`. Raises OptionError when the model cannot do it."""
    if wanted is None:
        return min(model.context_length, MAX_CONTEXT)
    if wanted < 1:
        raise OptionError(f"A context of {wanted} tokens was asked for; it takes at least 1.")
    if wanted > model.context_length:
        raise OptionError(
            f"A context of {wanted} tokens was asked for; {model.name} was made for at most {model.context_length}."
        )
    return wanted
