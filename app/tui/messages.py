"""Every message that workers and widgets of the terminal UI send, in one place.

Knows what is said, not who listens. Invariant: a message is a value; whoever handles it decides what follows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:  # what messages carry is half the program, 50 ms of imports that the first picture can do without
    from app.editing.diff import Hunk
    from app.editing.document import Document
    from app.editing.figures import LineAcceptance, RunFigures
    from app.editing.live import LiveDiff
    from app.editing.pipeline import EditPlan, Proposal
    from app.editing.region import Region
    from app.editing.review import Review
    from app.engine_client import EngineDescription
    from app.errors import AppError
    from app.model_jobs import PullProgress
    from app.model_rows import ModelRow
    from app.rates import Rates
    from app.watch_board import Board
    from app.watch_jobs import Said
    from editor_engine.events import Stats

# --- from the worker that has the engine ------------------------------------------------------------------------------


@dataclass
class EngineReady(Message):
    """The engine is loaded or reached."""

    engine: "EngineDescription"
    rates: "Rates | None"
    """How fast it was here the last time."""


@dataclass
class EngineFailed(Message):
    """The engine could not be loaded or reached, or it died; the program stays."""

    error: "AppError"


@dataclass
class EngineNote(Message):
    """What the engine's process says beside its answers: how loading goes, why it was started again."""

    sentence: str


@dataclass
class Warmed(Message):
    """Progress of reading a file before anything is asked."""

    document: "Document"
    done: int
    total: int
    finished: bool


@dataclass
class Counted(Message):
    """Tokens of a file's prompt without an instruction."""

    document: "Document"
    prompt: int
    source: int
    estimated: bool


@dataclass
class EditPlanned(Message):
    """The instruction is accepted; the model starts reading."""

    plan: "EditPlan"
    live: "LiveDiff"
    """Kept up to date by the run."""
    expected_s: float | None


@dataclass
class EditProgress(Message):
    """What happened since the last one, coalesced."""

    figures: "RunFigures"
    lines: "Mapping[int, LineAcceptance]"


@dataclass
class EditProposed(Message):
    """The reply is whole and became a proposal."""

    proposal: "Proposal"


@dataclass
class EditFailed(Message):
    """The run ended without a proposal: an error, a refused reply, no change, or a cancel."""

    error: "AppError"
    stats: "Stats | None"
    """None where the engine had not finished."""


# --- from widgets -----------------------------------------------------------------------------------------------------


@dataclass
class InstructionGiven(Message):
    """The user wants this done."""

    text: str


@dataclass
class EditorWanted(Message):
    """The user wants to write the instruction in an editor of theirs."""

    text: str


@dataclass
class InstructionChanged(Message):
    """The text in the instruction box."""

    text: str


@dataclass
class RegionChanged(Message):
    """Which lines may change; None for all."""

    region: "Region | None"


@dataclass
class ReviewChanged(Message):
    """A decision was made, taken back, or changed."""

    review: "Review"


@dataclass
class RedoHunk(Message):
    """The user wants one hunk of the review done anew."""

    index: int
    """1-based, in the review."""
    hunk: "Hunk"
    note: str
    """What to do otherwise."""


@dataclass
class ContinueReply(Message):
    """The user wants a reply that ended too early to go on."""


# --- from the watch over the file -------------------------------------------------------------------------------------


@dataclass
class FileChanged(Message):
    """The file on disk is not what was read."""

    newer: "Document | None"
    """As it is now; None when it is gone or cannot be read."""
    sentence: str


# --- from the worker that has the models ------------------------------------------------------------------------------


@dataclass
class ModelsListed(Message):
    """What models there are."""

    rows: "tuple[ModelRow, ...]"
    error: "AppError | None"
    """Why there are none to show."""


@dataclass
class PullMoved(Message):
    """A pull has got further."""

    model_id: str
    progress: "PullProgress"


@dataclass
class ModelJobDone(Message):
    """A pull or a verification has ended."""

    model_id: str
    sentence: str
    failed: bool


# --- from the worker that has the watches -----------------------------------------------------------------------------


@dataclass
class WatchMark(Message):
    """What to say of watches and proposals in a few words."""

    mark: str


@dataclass
class WatchesSeen(Message):
    """The watches that run and the proposals that wait."""

    board: "Board | None"
    error: "AppError | None"
    """Why there is nothing to show."""


@dataclass
class WatchSaid(Message):
    """The watch that was started here has something to say, last how it ended."""

    said: "Said"
