"""What an engine of our own says about itself, as a front end shows it: the same words wherever the engine runs.

Knows the records of both sides and nothing of how one reaches the other. Invariant: an engine described in process, in
a child and through `redraft serve` differs in `reached` only.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from app.engine_client import EngineDescription
from editor_engine.wire import EngineIdentity

if TYPE_CHECKING:  # editor_engine.engine brings numpy and the native core: 0.15 s that `--help` must not pay
    from editor_engine.engine import Engine


def identity_of(engine: "Engine", model_id: str) -> EngineIdentity:
    """The facts of an engine in this process."""
    info = engine.info
    return EngineIdentity(
        version=version("redraft"),
        contract_version=info.contract_version,
        model_id=model_id,
        sha256=info.sha256,
        device=info.device,
        threads=info.threads,
        isa=info.isa,
        context_length=info.context_length,
        notes=engine.notes,
    )


def description_of(identity: EngineIdentity, reached: str, notes: tuple[str, ...] = ()) -> EngineDescription:
    """For the front end; `notes` are the way's own and come after the engine's."""
    return EngineDescription(
        model_id=identity.model_id,
        sha256=identity.sha256,
        device=identity.device,
        threads=identity.threads,
        exactness="exact",
        policy="strict",
        context_length=identity.context_length,
        notes=(*identity.notes, *notes),
        reached=reached,
    )
