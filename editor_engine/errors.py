"""Everything the engine raises on purpose: one base, one subclass per cause, a sentence a user can act on.

Knows nothing of exit codes; a front end maps the classes to its own.
"""


class EngineError(Exception):
    """Base of every error the engine raises on purpose; `str(error)` is one clear sentence for the user."""


class ModelMissingError(EngineError):
    """The weights asked for are not on this machine."""


class ModelFileError(EngineError):
    """The model file is damaged, truncated, or not what its name says."""


class UnsupportedModelError(EngineError):
    """A whole and healthy file of an architecture, tensor type or tokenizer this engine does not run."""


class OutOfMemoryError(EngineError):
    """The weights or the KV cache do not fit the memory of this machine."""


class NumericsError(EngineError):
    """A NaN or an infinity met in activations or logits; the sentence names the layer."""


class ContextOverflowError(EngineError):
    """Prompt and expected output do not fit the model's context; the sentence has the numbers."""


class FetchError(EngineError):
    """Weights could not be fetched: offline, no consent, no disk space, or bytes that do not match their hash."""


class RequestError(EngineError):
    """A request that contradicts itself or the model (empty prompt, unknown option value)."""


class OptionError(RequestError):
    """Options of a load that contradict each other, the model or this machine; the sentence names the option."""


class CancelledError(EngineError):
    """The request's cancel flag was set; the cache is at its last whole pass."""


class ProtocolError(EngineError):
    """What came over a pipe or a socket is not what an engine of this version says."""
