"""Listing, fetching and verifying models in a process of its own: whoever waits stays light, and may walk away.

Runs `redraft models ... --json` and reads its lines; knows nothing of screens or sources. Invariant: when a call is
left, by any way, its process has ended; a pull that was stopped keeps what has arrived, and the next one continues it.
"""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app import json_process
from app.errors import ModelError
from app.json_process import json_lines
from app.model_room import Room
from app.model_rows import ModelRow

COMMAND = (*json_process.COMMAND, "models")


@dataclass(frozen=True)
class PullProgress:
    """How far a pull is."""

    source: str
    """`model hub` or `package index`."""
    done: int
    """Bytes of the model file that are here."""
    total: int


async def list_models(options: Sequence[str] = (), *, command: Sequence[str] = COMMAND) -> tuple[ModelRow, ...]:
    """Every model of the catalogue in its order, then other files of the models folder. Raises ModelError.

    `options` of a load say what their memory is counted for.
    """
    rows: list[ModelRow] = []
    names = [field.name for field in dataclasses.fields(ModelRow)]
    async for line in _lines([*command, "list", "--json", *options]):
        try:
            row = ModelRow(**{name: line[name] for name in names})
            room = None if row.room is None else Room(**line["room"])
        except (KeyError, TypeError) as error:
            raise ModelError("The list of models cannot be understood; is another version installed?") from error
        rows.append(dataclasses.replace(row, path=None if row.path is None else Path(row.path), room=room))
    return tuple(rows)


async def pull_model(
    model_id: str,
    on_progress: Callable[[PullProgress], object],
    *,
    from_index: bool = False,
    accept_licence: bool = False,
    command: Sequence[str] = COMMAND,
) -> None:
    """Fetch a model of the catalogue. Cancelling the call stops it.

    `from_index`: consent to the package index where the hub fails. Raises ModelError with the reason.
    """
    options = [*(["--from-index"] if from_index else []), *(["--accept-licence"] if accept_licence else [])]
    async for line in _lines([*command, "pull", "--json", *options, "--", model_id]):
        if line.get("type") == "progress":
            with contextlib.suppress(KeyError, TypeError, ValueError):  # a line we do not understand is no progress
                on_progress(PullProgress(str(line["source"]), int(line["done"]), int(line["total"])))


async def verify_model(model_id: str, *, command: Sequence[str] = COMMAND) -> None:
    """Hash an installed model again. Raises ModelError when it is not what it should be."""
    async for _ in _lines([*command, "verify", "--json", "--", model_id]):
        pass


def _lines(command: Sequence[str]) -> AsyncIterator[dict[str, Any]]:
    return json_lines(command, what="The process that fetches models", failure=ModelError)
