"""A user's file is written in one place, over hunks that were shown: by the shape of the sources.

Every other module that writes has to be in the table below, with what it writes.
"""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.editing.apply import apply_hunks

APP = Path(__file__).resolve().parents[3] / "app"
WRITERS = {
    "editing/filesystem.py": "the temporary beside a user's file, for replace.py",
    "editing/journal.py": "the journal",
    "editing/session_store.py": "locks of sessions",
    "editing/export.py": "a patch, under a name that is not taken",
    "headless.py": "a patch, under the name that was given, and never over a file that is read",
    "private_files.py": "what is ours, in folders of ours",
    "external_editor.py": "a text for the editor, in a folder of its own",
    "crash_report.py": "reports, in the folder of logs",
    "clients/child_pipe.py": "logs",
    "watch/presence.py": "what runs, in the folder of sockets",
    "cli.py": "nothing: streams that nobody reads, closed",
}
"""Module under app/ to what it writes."""

_WRITING = {"write_text", "write_bytes", "replace_file", "truncate", "NamedTemporaryFile", "mkstemp"}
_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT"}


def writes(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls that write a file or give one another name."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        of = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        modes = [value.value for value in given if isinstance(value, ast.Constant) and isinstance(value.value, str)]
        flagged = any(
            isinstance(node, ast.Attribute) and node.attr in _FLAGS for value in given for node in ast.walk(value)
        )
        if (
            name in _WRITING
            or of == "shutil"
            or (of == "os" and name in ("replace", "rename", "link", "symlink"))
            or (name == "open" and (flagged or any(set(mode) & set("wax+") for mode in modes if len(mode) <= 3)))
        ):
            yield call


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("path.write_text(x)", 1),
        ("open(path, 'w')", 1),
        ("path.open(mode='r+b')", 1),
        ("os.open(path, os.O_WRONLY | os.O_APPEND)", 1),
        ("os.replace(a, b)", 1),
        ("tempfile.NamedTemporaryFile()", 1),
        ("shutil.move(a, b)", 1),
        ("open(path, 'rb'); path.open(); os.open(path, os.O_RDONLY); text.replace('a', 'w'); replace(a, b=1)", 0),
    ],
)
def test_the_check_sees_what_it_should(source: str, count: int) -> None:
    assert len(list(writes(ast.parse(source)))) == count


def test_only_what_is_in_the_table_writes() -> None:
    found = {}
    for path in APP.rglob("*.py"):
        name = path.relative_to(APP).as_posix()
        if not name.startswith("bench"):  # measures on files of its own
            found[name] = [ast.unparse(call) for call in writes(ast.parse(path.read_text("utf-8")))]
    over_users_files = {name for name, calls in found.items() if any("replace_file(" in call for call in calls)}
    assert over_users_files == {"editing/apply.py", "editing/history.py"}
    assert {name for name, calls in found.items() if calls} - over_users_files == WRITERS.keys()


def test_without_hunks_nothing_can_be_applied() -> None:
    """What is written is a document and hunks of it, no text of anybody's; undo and redo write what the journal has."""
    parameters = list(inspect.signature(apply_hunks).parameters.values())
    assert [parameter.name for parameter in parameters[:2]] == ["document", "accepted"]
    assert parameters[1].default is inspect.Parameter.empty
    assert not {"text", "data", "content"} & {parameter.name for parameter in parameters}
