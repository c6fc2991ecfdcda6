"""The terminal UI as a whole: one engine, one workspace, the screens around it, and what happens when something breaks.

Knows no edit. Invariant: a fault of ours ends in a dialog with a report, not in a traceback, and the engine is let go
whatever happens.
"""

import asyncio
import importlib
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from textual.binding import BindingType
from textual.worker import Worker, WorkerState

from app.crash_report import write_report
from app.editing.document import open_document
from app.engine_client import EngineClient
from app.errors import AppError, ExitCode
from app.recall import remember_file
from app.tui.actions import Place, bindings, keymap
from app.tui.edit_worker import EditWorker
from app.tui.garbage import look_if_due
from app.tui.messages import EngineNote
from app.tui.screen_actions import ScreenActions
from app.tui.screens.file_screen import LOOK_AGAIN_S
from app.tui.screens.workspace import WorkspaceScreen
from app.tui.widgets.diff_view import DiffView

SOON = ("app.tui.edit_run", "app.tui.watch_worker", "app.editing.resume")
"""Imported on a thread once the file is on the screen: 100 ms that neither the first picture nor a key waits for."""

Connect = Callable[[str | None], EngineClient]
"""A client for a model (catalogue id or path); None takes the one of the settings. Cheap: it loads when first used."""


@dataclass(frozen=True)
class UiOptions:
    """What the command line and the settings say."""

    file: str | None = None
    encoding: str | None = None
    draft: bool = True
    strict: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)
    """Action id to keys, as in the settings."""
    theme: str = "redraft-dark"
    """Name of a theme."""
    watch_options: Callable[[str | None], tuple[str, ...]] = lambda model: ()
    """Options of the command line for a watch with this model; None is that of the start."""
    load_options: tuple[str, ...] = ()
    """Options of the command line for every load, whichever model is picked."""
    given: Mapping[str, tuple[object, str]] = field(default_factory=dict)
    """Settings key to value and option, of what the command line said."""
    on_picture: Callable[[], object] = lambda: None
    """Called once, when the file is on the screen."""


class RedraftApp(ScreenActions):
    """Redraft in a terminal."""

    CSS_PATH = ["redraft.tcss", "screens.tcss"]  # noqa: RUF012  # Textual declares it without ClassVar
    TITLE = "Redraft"
    KEPT = "What was undecided is kept and offered at the next start."
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Place.APP)]
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  # Textual declares it without ClassVar
        (0, "-narrow"),
        (100, "-wide"),
    ]

    def __init__(self, options: UiOptions, connect: Connect, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(options.theme)
        self.options = options
        self.connect = connect
        self._clock = clock
        self.keys = keymap(options.keys)
        self._model: str | None = None
        self.workspace = WorkspaceScreen(self._worker(None), draft=options.draft, strict=options.strict)

    def _worker(self, model: str | None) -> EditWorker:
        return EditWorker(self.connect(model), lambda message: self.workspace.post_message(message), self._clock)

    def on_mount(self) -> None:
        if _has_terminal():
            self.set_interval(LOOK_AGAIN_S, self.leave_without_terminal)
        self.set_interval(LOOK_AGAIN_S, self.look_at_watches)
        self.set_interval(LOOK_AGAIN_S, self.look_for_garbage)
        self.set_keymap(self.keys)
        self.push_screen(self.workspace)

    def workspace_is_there(self) -> None:
        """The workspace calls it before it is painted: the first picture has the file."""
        if self.options.file is not None:
            self.open_path(self.options.file)
        self.workspace.call_after_refresh(self._go_on_after_picture)

    def _go_on_after_picture(self) -> None:
        """What could wait until the file is on the screen."""
        self.options.on_picture()
        self.run_worker(asyncio.to_thread(_import_soon), group="soon", exit_on_error=False)
        self.offer_left(self.options.file)

    def look_for_garbage(self) -> None:
        """Between replies: in one, a key would wait for it, and so would the next update."""
        if not self.workspace.at_work:
            look_if_due()

    def leave_without_terminal(self) -> None:
        """End when the terminal is gone: nobody sees or steers what goes on here."""
        if not _has_terminal():
            self.exit(return_code=ExitCode.BROKEN_PIPE)

    def open_path(self, path: str) -> None:
        """Open a file in the workspace, or say why not."""
        try:
            document = open_document(path, self.options.encoding)
        except AppError as error:
            self.tell(str(error), "error")
        else:
            if self.workspace.may_change_file():
                self.workspace.open(document)
                self.call_after_refresh(remember_file, path)

    def use_model(self, model: str | None) -> None:
        """Let go of the engine and reach another."""
        self._model = model
        old, self.workspace.worker = self.workspace.worker, self._worker(model)
        self.run_worker(old.close(), group="closing", exit_on_error=False)
        self.workspace.engine_replaced()

    def load_options(self) -> tuple[str, ...]:
        return self.options.load_options

    def watch_options(self) -> tuple[str, ...]:
        return self.options.watch_options(self._model)

    def given(self) -> Mapping[str, tuple[object, str]]:
        return self.options.given

    def engine_note(self, sentence: str) -> None:
        """What the engine says beside its answers. Safe from any thread."""
        self.workspace.post_message(EngineNote(sentence))

    def abandon_engine(self) -> None:
        """Give up on an engine that does not stop when asked, and start another."""
        self.workers.cancel_group(self, "edit")
        self.workspace.run_broke("The engine did not answer and was given up; nothing was changed.")
        self.use_model(self._model)

    def on_app_focus(self) -> None:
        """The user comes back from somewhere else, perhaps from another editor."""
        self.run_worker(self.workspace.look_again(), group="look", exit_on_error=False)

    async def on_unmount(self) -> None:
        await self.watches.close()
        await self.workspace.worker.close()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that failed has found a fault of ours: what a user can cause is an AppError and was told already."""
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None:
            report = "".join(traceback.format_exception(error))
            said, written = f"{type(error).__name__}: {error}", write_report(report)
            if not self.workspace.query(DiffView):
                return  # the screen is being taken down under a run: the report is all that can be left
            from app.tui.widgets.crash_dialog import CrashDialog

            self.push_screen(CrashDialog(said, report, written, self.copy))
            self.workspace.run_broke(str(error))


def _import_soon() -> None:
    for name in SOON:
        importlib.import_module(name)


def _has_terminal() -> bool:
    """False in tests without one, and where it was closed and did not take this process along."""
    return sys.__stdin__ is not None and sys.__stdin__.isatty()
