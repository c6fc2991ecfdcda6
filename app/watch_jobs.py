"""A watch in a process of its own, for whoever starts one and has something else to do: sentences in, its end out.

Runs `redraft watch ... --json --until-eof`; knows nothing of screens. Invariant: the watch ends with the call, and with
this process, however that ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from app import json_process
from app.errors import AppError, StateError
from app.json_process import json_lines
from app.load_options import Given, command_words
from app.paths import shown
from app.watch.events import Failed, Held, Note, Ready, Unchanged
from app.watch.wording import event_sentence

COMMAND = (*json_process.COMMAND, "watch", "--json", "--until-eof")


@dataclass(frozen=True)
class WatchOrder:
    """A watch to start."""

    path: str
    """A folder or a file."""
    instruction: str
    """Of every saved file; empty: only comments in them are obeyed."""
    options: tuple[str, ...] = ()
    """Of the command line, such as those that lead to its engine."""


@dataclass(frozen=True)
class Said:
    """What a watch has to say, in a sentence."""

    sentence: str
    failed: bool = False


def command_options(*, engine: str | None, load: Given, strict: bool | None, no_draft: bool | None) -> tuple[str, ...]:
    """What was given on our command line, for that of a watch."""
    flags = (("--strict", strict), ("--no-draft", no_draft))
    reached = [] if engine is None else ["--engine", engine]
    return (*reached, *command_words(load), *(name for name, given in flags if given))


async def run_watch(
    order: WatchOrder,
    on_start: Callable[[int], object],
    on_said: Callable[[Said], object],
    *,
    command: Sequence[str] = COMMAND,
) -> None:
    """Watch until the watch ends by itself; cancelling the call stops it. `on_start` hears its process id.

    Raises InterruptedByUserError where someone else stopped it, StateError where it could not run.
    """
    instruction = ["-i", order.instruction] if order.instruction.strip() else []
    words = [*command, *instruction, *order.options, "--", order.path]
    async for line in json_lines(words, what="The watch", failure=StateError, on_start=on_start):
        said = _said(line)
        if said is not None:
            on_said(said)


def _said(line: dict[str, Any]) -> Said | None:
    """What of a line is worth a sentence; None for the rest, and for what cannot be understood."""
    try:
        match line.get("type"):
            case "ready":
                names = ("folders", "files", "events", "seconds")
                return Said(event_sentence(Ready(tuple(line["roots"]), *(line[name] for name in names))))
            case "proposal":
                hunks = line["hunks"]
                return Said(f"{shown(line['path'])}: {hunks} hunk{'s' * (hunks != 1)} to review.")
            case "unchanged":
                return Said(event_sentence(Unchanged(line["path"])))
            case "held":
                return Said(event_sentence(Held(line["path"], line["for_s"])))
            case "failed":
                return Said(event_sentence(Failed(line["path"], AppError(line["error"]["message"]))), failed=True)
            case "note":
                return Said(event_sentence(Note(line["message"])))
    except (KeyError, TypeError, ValueError):
        return None
    return None
