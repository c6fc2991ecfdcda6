"""Workload `watch`: a watch on a large tree: its start, what it costs while idle, and a save's way to its proposal.

    tree    -> N files in folders of a hundred, and one that is saved
    start   -> `redraft watch` in a process of its own, until it hears of every change
    idle    -> its processor time and memory while nothing happens
    saves   -> the file is saved with a trigger in it, again and again: settle, queue, prefill, decode

Knows the command line and the machine interface, nothing of the watch's insides. Invariant: the engine's own process is
not counted in what the watch costs, and a save that leads to no proposal gives no figure.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from app.errors import EngineUnreachableError
from editor_engine.bench.measure import Spread

FOLDER_FILES = 100
"""Files in a folder of the tree."""
FILE_BYTES = 2000
INSTRUCTION = "Add type hints to the arguments and the result of every method of Parcel."
"""For the benchmark's own file; small models manage it."""
_TICKS = os.sysconf("SC_CLK_TCK")
_TIMES = ("settle_s", "queue_s", "prefill_s", "decode_s", "total_s")


@dataclass(frozen=True)
class WatchFigures:
    """What was measured; every figure with its runs."""

    start_s: Spread
    """From the start of looking at the tree until every change is heard of; the engine's start is not in it."""
    idle_cpu_share: Spread
    """Processor time over time, of one processor, while nothing happens."""
    resident_mb: Spread
    """Memory of the watch while idle."""
    settle_s: Spread
    """First event of a save to its place in the queue."""
    queue_s: Spread
    prefill_s: Spread
    """Out of the queue to the first token: what the warm start, while the file settled, has left of it."""
    decode_s: Spread
    total_s: Spread
    """First event of a save to its finished proposal; storing it comes after."""
    stop_s: Spread
    """From SIGTERM to the end of the process, the engine's among it."""

    def table(self) -> str:
        """For people: one line a figure."""
        return "\n".join(f"{field.name:<16}{getattr(self, field.name).words(4):>36}" for field in fields(self))

    def fields(self) -> dict[str, object]:
        """For programs."""
        return {field.name: getattr(self, field.name).fields() for field in fields(self)}


def make_tree(root: Path, files: int) -> None:
    """A tree of so many source files below `root`."""
    text = ("value = 1\n" * (FILE_BYTES // 10)).encode()
    for start in range(0, files, FOLDER_FILES):
        folder = root / f"package_{start // FOLDER_FILES // 20}" / f"part_{start // FOLDER_FILES}"
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(start, min(start + FOLDER_FILES, files)):
            (folder / f"module_{number}.py").write_bytes(text)


def measure_watch(
    command: Sequence[str],
    environment: Mapping[str, str],
    root: Path,
    source: str,
    *,
    saves: int,
    repeats: int,
    idle_s: float,
    progress: Callable[[str], None],
) -> WatchFigures:
    """Watch `root` `repeats` times, each with `saves` saves of a file of its own (one file would trip the breaker).

    `command` starts `redraft watch` up to its options. Raises EngineUnreachableError where a watch ends by itself, or
    no save leads to a proposal.
    """
    once: dict[str, list[float]] = {"start_s": [], "idle_cpu_share": [], "resident_mb": [], "stop_s": []}
    times: dict[str, list[float]] = {name: [] for name in _TIMES}
    for run in range(repeats):
        progress(f"watch {run + 1} of {repeats}")
        with _watch([*command, str(root), "--json"], environment) as process:
            once["start_s"].append(_next(process, "ready")["seconds"])
            _save(process, root / f"first_{run}.py", source)  # packs weights, loads parsers
            began, spent = time.monotonic(), _cpu_s(process.pid)
            time.sleep(idle_s)
            once["idle_cpu_share"].append((_cpu_s(process.pid) - spent) / (time.monotonic() - began))
            once["resident_mb"].append(_resident_mb(process.pid))
            for number in range(saves):
                progress(f"save {number + 1} of {saves}")
                timing = _save(process, root / f"saved_{run}_{number}.py", source)
                for name in _TIMES if timing else ():
                    times[name].append(timing[name])
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            for _ in process.stdout or ():
                pass
            process.wait()
            once["stop_s"].append(time.monotonic() - began)
    if not times["total_s"]:
        raise EngineUnreachableError("The model made no proposal for any save; take another model.")
    return WatchFigures(**{name: Spread(tuple(values)) for name, values in (once | times).items()})


def _save(process: "subprocess.Popen[str]", path: Path, source: str) -> dict[str, float]:
    """Save a file with a trigger; the timing of its proposal, empty where the model made none.

    It begins with a line of its own, so that no other file's prompt is of use to it.
    """
    path.write_text(f"# {path.stem}\n# redraft: {INSTRUCTION}\n{source}")
    event = _next(process, "proposal", "unchanged", "failed")
    return event["timing"] if event["type"] == "proposal" else {}


def _next(process: "subprocess.Popen[str]", *kinds: str) -> dict[str, Any]:
    """The next line of one of these types."""
    assert process.stdout is not None
    for text in process.stdout:
        line: dict[str, Any] = json.loads(text)
        if line["type"] in kinds:
            return line
        if line["type"] == "result":
            raise EngineUnreachableError(f"The watch ended: {line['error']}.")
    raise EngineUnreachableError("The watch ended without a word.")


@contextmanager
def _watch(command: Sequence[str], environment: Mapping[str, str]) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def _cpu_s(pid: int) -> float:
    """Processor seconds of one process so far, its children not among them."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / _TICKS


def _resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
