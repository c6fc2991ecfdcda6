"""What leaves the diff pane: the result to look at, a patch file, the clipboard, words to the user.

Knows a review as it is; decides nothing. Patches and screens are imported when they are asked for: 25 ms that the first
picture need not wait for. Invariant: what leaves are the hunks that are not rejected, of the file they
were made for.
"""

from typing import TYPE_CHECKING, Literal, cast

from app.editing.review import Review
from app.errors import AppError
from app.paths import shown
from app.tui.widgets.diff_canvas import DiffCanvas

if TYPE_CHECKING:
    from app.tui.shell import Shell


class DiffExports(DiffCanvas):
    """A diff that can be searched and taken elsewhere."""

    @property
    def reviewed(self) -> Review:
        """The review, where there is one."""
        assert self.review is not None
        return self.review

    @property
    def ui(self) -> "Shell":
        """The app, by its own type."""
        return cast("Shell", self.app)

    def tell(self, sentence: str, severity: Literal["information", "warning", "error"] = "information") -> None:
        """Say one sentence."""
        self.ui.tell(sentence, severity)

    def hint(self, sentence: str) -> None:
        """Say what a key did or could not do."""
        self.ui.hint(sentence)

    def ready(self) -> bool:
        """True while there are hunks to decide about; says so otherwise."""
        raise NotImplementedError

    # --- looking ------------------------------------------------------------------------------------------------------

    def action_find(self) -> None:
        from app.tui.screens.question import Ask

        self.app.push_screen(Ask("Find", self.wanted), self._find)

    def _find(self, wanted: str | None) -> None:
        if wanted is not None:
            self.wanted = wanted
            self.look_changed()
            self.action_find_next()

    def action_find_next(self) -> None:
        found = self.find_from(self.cursor + 1) if self.wanted else None
        if found is not None:
            self.go_to(found)
        elif self.wanted:
            self.hint(f"{self.wanted} is in none of the lines shown.")

    def action_preview(self) -> None:
        if self.ready():
            from app.tui.screens.preview import PreviewScreen

            count = len(self.reviewed.accepted)
            title = f"{shown(self.reviewed.document.name)} with {count} accepted hunk{'s' * (count != 1)}"
            self.app.push_screen(PreviewScreen(self.reviewed, title))

    # --- taking it elsewhere ------------------------------------------------------------------------------------------

    def action_export_patch(self) -> None:
        if self.ready():
            from app.editing.export import export_patch

            try:
                path = export_patch(self.reviewed.document, self.reviewed.wanted)
            except AppError as error:
                self.tell(str(error), "error")
            else:
                self.tell(f"Written to {shown(path)}.")

    def action_copy_patch(self) -> None:
        if self.ready():
            from app.editing.patch import patch_bytes

            try:
                patch = patch_bytes(self.reviewed.document, self.reviewed.wanted)
                copied = self.ui.copy(patch.decode("utf-8", "surrogateescape"))
            except AppError as error:
                self.tell(str(error), "error")
            else:
                where = "Copied, and in" if copied.sent else "Too long for the clipboard; it is in"
                self.tell(f"{where} {shown(copied.path)}.")
