"""Our own command line in a process of its own: its JSON lines as they come, and its end as a success or a reason.

Knows nothing of what the process does. Invariant: when a call is left, by any way, its process has ended.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from app.errors import AppError, InterruptedByUserError

# -P: the current folder may have an `app` of the user's own, which is none of ours to import.
COMMAND = (sys.executable, "-P", "-m", "app.cli")
_PATIENCE_S = 5.0
"""How long a process may take to stop by itself when it is told to."""
_LONGEST_LINE = 1 << 20


async def json_lines(
    command: Sequence[str],
    *,
    what: str,
    failure: type[AppError],
    on_start: Callable[[int], object] = lambda pid: None,
) -> AsyncIterator[dict[str, Any]]:
    """The JSON lines of a command, its `result` left out, which is no success where it has an error.

    `what` begins the sentences about it; `failure` is raised for whatever is wrong, InterruptedByUserError where it
    was stopped by someone else. Its stdin stays open while we live: a command that reads it hears of our end, however
    sudden.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_LONGEST_LINE,
            start_new_session=True,  # ctrl-C in the terminal is for whoever called us
        )
    except OSError as error:
        raise failure(f"{what} cannot be started: {error.strerror}.") from error
    result: dict[str, Any] | None = None
    try:
        on_start(process.pid)
        if process.stdout is None:
            raise failure(f"{what} has no output.")
        async for raw in process.stdout:
            line = _object(raw)
            if line.get("type") == "result":
                result = line
            elif line:
                yield line
        code = await process.wait()
    finally:
        await _stopped(process)
    if result is None:
        raise failure(f"{what} ended without an answer ({_end(code)}); try again.")
    error_said = result.get("error")
    if isinstance(error_said, dict):
        kind = InterruptedByUserError if result.get("outcome") == "cancelled" else failure
        raise kind(str(error_said.get("message", "It failed without saying why.")))


def _object(raw: bytes) -> dict[str, Any]:
    """A line as a JSON object; empty where it is none."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return line if isinstance(line, dict) else {}


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
