"""`--notify CMD`: runs a command of the user's for every edit that was proposed, written, or came to nothing.

The command is split as a shell would, and run without one; it gets one argument more, a sentence, and the event as JSON
on stdin. Invariant: the watch never waits for it, at most one runs at a time, and none outlives the watch.
"""

import asyncio
import contextlib
import json
import shlex
from collections import deque
from collections.abc import Callable

from app.errors import UsageError
from app.watch.events import Applied, Failed, Proposed, WatchEvent
from app.watch.wording import event_fields, event_sentence

MOST_WAITING = 100
"""Events that wait for the command; the oldest are dropped beyond that."""
_PATIENCE_S = 10.0


class Notifier:
    """Runs the command, event by event, on the running event loop."""

    def __init__(self, command: str, note: Callable[[str], None]) -> None:
        """`note` hears, once, that the command cannot be run. Raises UsageError for one that cannot be split."""
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--notify {command!r} is not a command: {error}.") from error
        if not self._command:
            raise UsageError("--notify needs a command.")
        self._note = note
        self._said = False
        self._waiting: deque[WatchEvent] = deque(maxlen=MOST_WAITING)
        self.working: asyncio.Task[None] | None = None
        """Runs the command for what waits; None before the first event."""

    def hear(self, event: WatchEvent) -> None:
        """Tell the command of an event, if it is of a kind that it hears of."""
        if not isinstance(event, (Proposed, Applied, Failed)):
            return
        self._waiting.append(event)
        if self.working is None or self.working.done():
            self.working = asyncio.ensure_future(self._work())

    async def close(self) -> None:
        """Let what runs come to its end, but not for long; what waits is dropped."""
        self._waiting.clear()
        if self.working is not None:
            await asyncio.wait([self.working], timeout=0.5)
            self.working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.working

    async def _work(self) -> None:
        while self._waiting:
            await self._run(self._waiting.popleft())

    async def _run(self, event: WatchEvent) -> None:
        kind, fields = event_fields(event)
        data = json.dumps({"type": kind, **fields}).encode("ascii") + b"\n"
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                event_sentence(event),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except (OSError, ValueError) as error:
            self._say_once(f"The --notify command cannot be run: {error}.")
            return
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await process.communicate(data)
            if process.returncode:
                self._say_once(f"The --notify command ended with code {process.returncode}.")
        except TimeoutError:
            self._say_once(f"The --notify command took longer than {_PATIENCE_S:.0f} s and was ended.")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    def _say_once(self, sentence: str) -> None:
        if not self._said:
            self._said = True
            self._note(sentence)
