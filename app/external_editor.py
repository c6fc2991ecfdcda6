"""The user's own editor on a text or a file: which one it is, and what came back.

Knows nothing of screens; whoever owns the terminal gives it away first. Invariant: a text goes through a private
temporary file that is gone afterwards, and what is returned is what the editor left, byte for byte as text.
"""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from app.errors import UsageError
from app.paths import shown


def editor_command(environment: Mapping[str, str] | None = None) -> list[str]:
    """$VISUAL, else $EDITOR, with its own options. Raises UsageError where neither is set, or not a command."""
    environment = os.environ if environment is None else environment
    for name in ("VISUAL", "EDITOR"):
        value = environment.get(name, "").strip()
        if value:
            try:
                return shlex.split(value)
            except ValueError as error:
                raise UsageError(f"${name} is not a command: {error}.") from error
    raise UsageError("Neither $VISUAL nor $EDITOR is set; set one to your editor, such as `export EDITOR=nano`.")


def edit_file(path: Path, environment: Mapping[str, str] | None = None) -> None:
    """Let the user edit a file. Raises UsageError when the editor cannot be run or ends with a failure."""
    command = editor_command(environment)
    try:
        code = subprocess.run([*command, os.fspath(path)], check=False).returncode
    except OSError as error:
        raise UsageError(f"The editor {shown(command[0])} cannot be started: {error.strerror}.") from error
    if code != 0:
        raise UsageError(f"The editor {shown(command[0])} ended with {code}; what it wrote is not taken.")


def edit_text(text: str, suffix: str = ".txt", environment: Mapping[str, str] | None = None) -> str:
    """`text` as the user's editor left it; `suffix` tells the editor the language.

    Raises UsageError as `edit_file` does, and for what is no UTF-8 afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="redraft-") as folder:  # 0700
        path = Path(folder) / f"edit{suffix}"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        edit_file(path, environment)
        try:
            return path.read_bytes().decode("utf-8")
        except FileNotFoundError as error:
            raise UsageError("The editor removed the file; nothing is taken.") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"What the editor wrote is not UTF-8 (byte {error.start}); nothing is taken.") from error
