"""What the benchmark edits: its own session of ten turns over one file, or the tasks of a file the user names.

Knows no engine. Invariant: the package ships only text of its own; everything else comes through `--tasks`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.editing.language import Language, detect_language
from app.editing.prompt import Budget, build_prompt
from editor_engine.bench.peer_process import PeerRequest
from editor_engine.bench.task_file import numbered_tasks
from editor_engine.errors import RequestError
from prompts import bench_text

OWN_FILE = "parcels.py"
"""Name that the session's file goes by."""
RENAME = 2
"""Index of the turn that renames a method: a change in several places that the smallest model makes too."""


@dataclass(frozen=True)
class Turn:
    """One instruction, and the file it is given for."""

    kind: str
    """What the turn is about, or the task's id."""
    instruction: str
    text: str | None
    """LF text of the file; None takes the file as the turn before left it."""
    language: Language


def own_session() -> list[Turn]:
    """The ten turns of the benchmark; the first one brings the file."""
    text = bench_text("parcels")
    language = detect_language(OWN_FILE, text.partition("\n")[0])
    pairs = [line.split(": ", 1) for line in bench_text("turns").splitlines()]
    return [
        Turn(kind, instruction, text if number == 0 else None, language)
        for number, (kind, instruction) in enumerate(pairs)
    ]


def turns_of_file(path: Path) -> list[Turn]:
    """One turn for each line of a JSON-lines file with `id`, `before`, `instruction` and, if known, `path`.

    Raises RequestError when the file cannot be read, a line is not such a task, or there is none.
    """
    turns = [_turn_of(path, number, task) for number, task in numbered_tasks(path)]
    if not turns:
        raise RequestError(f"{path} has no task.")
    return turns


def _turn_of(path: Path, number: int, task: Mapping[str, object]) -> Turn:
    fields = [task.get(name) for name in ("id", "before", "instruction")]
    if not all(isinstance(field, str) and field for field in fields):
        raise RequestError(f"Line {number} of {path} needs id, before and instruction as text.")
    kind, before, instruction = map(str, fields)
    text = before.replace("\r\n", "\n")
    name = task.get("path")
    language = detect_language(name if isinstance(name, str) else "", text.partition("\n")[0])
    return Turn(kind, instruction, text, language)


def file_lines(text: str) -> list[str]:
    """Lines without line ends, as an opened file has them."""
    return text.removesuffix("\n").split("\n")


def peer_requests(turns: Sequence[Turn], count_tokens: Callable[[str], int]) -> tuple[tuple[PeerRequest, ...], int]:
    """(requests any engine can answer, tokens the longest one needs).

    A turn that goes on from the one before is given the last file there was: engines differ in what they answer, and
    all must be asked the same.
    """
    requests = []
    longest = 0
    text = ""
    for turn in turns:
        text = turn.text if turn.text is not None else text
        prompt = build_prompt(file_lines(text), turn.instruction, turn.language)
        budget = Budget(prompt=0, expected=count_tokens(prompt.source), context=0)
        requests.append(PeerRequest(prompt.messages, budget.max_tokens, prompt.source))
        longest = max(longest, sum(count_tokens(m.content) + 8 for m in prompt.messages) + budget.max_tokens)
    return tuple(requests), longest
