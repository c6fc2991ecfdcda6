"""What can be said of each model: facts of the catalogue, what is installed of it, and whether this machine carries it.

Knows nothing of terminals, and fetches nothing. Invariant: unknown is None, never a guess.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.model_room import Room
from editor_engine.store.catalogue import CatalogueModel

if TYPE_CHECKING:  # looking into the models folder is not needed for a command's help
    from editor_engine.store.installed import InstalledModel


@dataclass(frozen=True)
class ModelRow:
    """One model, under the names of the machine interface."""

    id: str
    bytes: int
    licence: str | None
    """None: not in the catalogue."""
    memory_bytes: int | None
    """What a load needs."""
    fits: bool | None
    """This machine has that much memory available now."""
    installed: bool
    whole: bool | None
    """True: known to be right. False: damaged. None: not installed, or not known before it is hashed."""
    path: Path | None
    sha256: str | None
    for_tests: bool
    """Too small to edit with."""
    room: Room | None
    """What `memory_bytes` is made of; None: not looked at."""

    @property
    def state(self) -> str:
        """In words: `yes`, `yes, unverified`, `damaged` or `no`."""
        if not self.installed:
            return "no"
        return {True: "yes", False: "damaged", None: "yes, unverified"}[self.whole]

    @property
    def fit(self) -> str:
        """In words: `yes`, `no` or `unknown`."""
        return {True: "yes", False: "no", None: "unknown"}[self.fits]


def model_row(
    model: CatalogueModel | None, entry: "InstalledModel | None", available: int | None, room: Room | None = None
) -> ModelRow:
    """The row of a model of the catalogue, of a file in the models folder, or of both.

    `available` is this machine's memory in bytes; `room`, where it was looked at, knows better than the catalogue what
    is needed of it. Raises ValueError without either.
    """
    facts: tuple[str, int, str | None, int | None, str | None, bool]
    if model is not None:
        facts = (model.id, model.bytes, model.licence, model.memory_bytes, model.sha256, model.for_tests)
    elif entry is not None:
        facts = (entry.id, entry.bytes, None, None, entry.sha256, False)
    else:
        raise ValueError("a row is of a model or of a file")
    name, size, licence, memory, sha256, for_tests = facts
    fits = None if memory is None or available is None else memory <= available
    if room is not None:
        memory, fits = room.needed, room.fits
    return ModelRow(
        id=name,
        bytes=size,
        licence=licence,
        memory_bytes=memory,
        fits=fits,
        installed=entry is not None,
        whole=entry.whole if entry else None,
        path=entry.path if entry else None,
        sha256=sha256,
        for_tests=for_tests,
        room=room,
    )
