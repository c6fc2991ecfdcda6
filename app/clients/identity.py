"""What an engine of our own says about itself, as a front end shows it: the same words wherever the engine runs.

Knows the records of both sides and nothing of how one reaches the other. Invariant: an engine described in process, in
a child and through `redraft serve` differs in `reached` only.
"""

from app.engine_client import EngineDescription
from editor_engine.wire import EngineIdentity

_EXACT_EDITS = ("exact", "exact when greedy")
"""Guarantees under which an edit comes out as by plain decoding: every edit is greedy."""


def description_of(identity: EngineIdentity, reached: str, notes: tuple[str, ...] = ()) -> EngineDescription:
    """For the front end; `notes` are the way's own and come after the engine's."""
    return EngineDescription(
        model_id=identity.model_id,
        sha256=identity.sha256,
        device=identity.device,
        threads=identity.threads,
        exactness="exact" if identity.guarantee in _EXACT_EDITS else "not guaranteed",
        policy="strict",
        context_length=identity.context_length,
        notes=(*identity.notes, *notes),
        reached=reached,
        choice=identity.choice,
        backend=identity.backend,
        arithmetic=identity.isa,
    )
