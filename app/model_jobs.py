"""Listing, fetching and verifying models in a process of its own: whoever waits stays light, and may walk away.

Runs `redraft models ... --json` and reads its lines; knows nothing of screens or sources. Invariant: when a call is
left, by any way, its process has ended; a pull that was stopped keeps what has arrived, and the next one continues it.
"""

import asyncio
import contextlib
import dataclasses
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import InterruptedByUserError, ModelError
from app.model_rows import ModelRow

# -P: the current folder may have an `app` of the user's own, which is none of ours to import.
COMMAND = (sys.executable, "-P", "-m", "app.cli", "models")
_PATIENCE_S = 5.0
"""How long a process may take to stop by itself when it is told to."""
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class PullProgress:
    """How far a pull is."""

    source: str
    """`model hub` or `package index`."""
    done: int
    """Bytes of the model file that are here."""
    total: int


async def list_models(*, command: Sequence[str] = COMMAND) -> tuple[ModelRow, ...]:
    """Every model of the catalogue in its order, then other files of the models folder. Raises ModelError."""
    rows: list[ModelRow] = []
    names = [field.name for field in dataclasses.fields(ModelRow)]
    async for line in _lines([*command, "list", "--json"]):
        try:
            row = ModelRow(**{name: line[name] for name in names})
        except KeyError as error:
            raise ModelError("The list of models cannot be understood; is another version installed?") from error
        rows.append(dataclasses.replace(row, path=None if row.path is None else Path(row.path)))
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


async def _lines(command: Sequence[str]) -> AsyncIterator[dict[str, Any]]:
    """The JSON lines of a command, its `result` left out. Raises ModelError for a result that is no success."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
            start_new_session=True,  # ctrl-C in the terminal is for whoever called us
        )
    except OSError as error:
        raise ModelError(f"The process that fetches models cannot be started: {error.strerror}.") from error
    result: dict[str, Any] | None = None
    try:
        if process.stdout is None:
            raise ModelError("The process that fetches models has no output.")
        async for raw in process.stdout:
            line = _object(raw)
            if line.get("type") == "result":
                result = line
            elif line:
                yield line
        code = await process.wait()
    finally:
        await _stopped(process)
    _require_success(result, code)


def _object(raw: bytes) -> dict[str, Any]:
    """A line as a JSON object; empty where it is none."""
    try:
        line = json.loads(raw)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


def _require_success(result: dict[str, Any] | None, code: int) -> None:
    if result is None:
        raise ModelError(f"The process that fetches models ended without an answer ({_end(code)}); try again.")
    error = result.get("error")
    if isinstance(error, dict):
        kind = InterruptedByUserError if result.get("outcome") == "cancelled" else ModelError
        raise kind(str(error.get("message", "It failed without saying why.")))


def _end(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


async def _stopped(process: asyncio.subprocess.Process) -> None:
    """Let the process stop as if by ctrl-C, so that it keeps what it has; kill it when it does not."""
    if process.returncode is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
