"""Settings: each key, its value, where that comes from and what it may be; and where Redraft keeps things.

Shows `app.settings`; the file is changed in the user's editor alone. Invariant: a file that is wrong is said to be,
with what to mend, and the settings in force stay.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import DataTable, Label

from app.errors import AppError
from app.paths import journal_dir, logs_dir, sessions_dir, settings_file, shown
from app.private_files import write_private
from app.recipes import recipes_file
from app.settings import explain_settings, settings_template
from app.terminal_text import visible
from app.tui.screens.dialog import Dialog
from editor_engine.config import models_dir

_WORDS = "e edits the file in $EDITOR, l locates (and copies) what is marked, escape closes"


class SettingsScreen(Dialog[None]):
    """A table of settings, and of places."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Close"),
        Binding("e", "edit", "Edit"),
        Binding("l", "locate", "Locate"),
    ]

    def __init__(
        self,
        edit: Callable[[Path], None],
        copy: Callable[[str], object],
        changed: Callable[[], object],
        given: Mapping[str, tuple[object, str]] = MappingProxyType({}),
    ) -> None:
        """`edit` lets the user edit a file, `copy` puts text on the clipboard, `changed` makes new settings count.

        `given`: key -> value and option, of what the command line said. `edit` and `changed` raise AppErrors.
        """
        super().__init__()
        self._given = given
        self._edit = edit
        self._copy = copy
        self._changed = changed
        self._places: list[Path] = []
        self._wanted: list[str] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide"):
            yield Label("Settings", markup=False, classes="title")
            yield DataTable(cursor_type="row", zebra_stripes=True)
            yield Label("", markup=False, classes="note", id="wanted")
            yield Label(_WORDS, markup=False, classes="note", id="words")

    def on_mount(self) -> None:
        self.query_one(DataTable).add_columns("setting", "value", "from")
        self._fill()

    def _fill(self) -> None:
        table = self.query_one(DataTable)
        table.clear()
        self._places, self._wanted = [], []
        file = settings_file()
        try:
            for setting in explain_settings():
                value, origin = self._given.get(setting.key, (setting.value, setting.origin))
                origin = "settings.toml" if origin == str(file) else origin
                value = "-" if value is None else str(value)
                variable = f"; {setting.variable} wins over the file" if setting.variable else ""
                self._row(file, [setting.key, value, origin], f"{setting.key}: {setting.wanted}{variable}.")
        except AppError as error:
            self.note(str(error))
        places = [
            ("settings", file),
            ("recipes", recipes_file()),
            ("models", models_dir()),
            ("journal of edits", journal_dir()),
            ("undecided sessions", sessions_dir()),
            ("logs and reports", logs_dir()),
        ]
        for name, path in places:
            self._row(path, [name, shown(path), "" if path.exists() else "not there yet"], "")

    def _row(self, place: Path, cells: Sequence[str], wanted: str) -> None:
        self.query_one(DataTable).add_row(*(Text(visible(cell)) for cell in cells))
        self._places.append(place)
        self._wanted.append(wanted)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """What the marked setting may be."""
        self.query_one("#wanted", Label).update(self._wanted[event.cursor_row])

    def note(self, sentence: str) -> None:
        """Say something below the table."""
        self.query_one("#words", Label).update(f"{visible(sentence)}\n{_WORDS}")

    def action_locate(self) -> None:
        place = self._places[self.query_one(DataTable).cursor_row]
        try:
            self._copy(str(place))
        except AppError as error:
            self.note(str(error))
        else:
            self.note(f"{shown(place)} (copied)")

    def action_edit(self) -> None:
        file = settings_file()
        try:
            if not file.exists():
                write_private(file, settings_template().encode("utf-8"))
            self._edit(file)
            explain_settings()
            self._changed()
        except AppError as error:
            self._fill()
            self.note(f"{error} The settings in force stay.")
        else:
            self._fill()
            self.note("Theme and keys count at once; the rest from the next start.")
