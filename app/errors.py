"""What the application raises on purpose, and the exit code each cause ends with.

Knows nothing of terminals: a front end prints `str(error)`, one sentence a user can act on, and exits with
`error.exit_code`. Invariant: one subclass per cause, `code` is a stable word that scripts may compare (`error.code` of
the machine interface), and every exit code is one of `ExitCode`.
"""

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit codes of every command, documented in README."""

    OK = 0
    """Done: diff printed, applied (also after a clean rebase), declined by the user, filter mode with no change."""
    REFUSED = 1
    """Refused by a check; reply cut, elided, empty or endless; a character the encoding lacks; verify failed."""
    USAGE = 2
    """Options, settings or a region that make no sense."""
    FILE = 3
    """The file cannot be edited: missing, unreadable, undecodable, binary, empty, a folder, too long, ..."""
    ENGINE = 4
    """Model, memory, or engine unreachable."""
    UNCHANGED = 5
    """No change needed."""
    CONFLICT = 6
    """A change made meanwhile: nothing was written, or what was written is named."""
    INTERRUPTED = 130
    """Stopped by ctrl-C or a signal."""
    BROKEN_PIPE = 141
    """Whoever read our output has gone; as a shell counts a program that SIGPIPE ended."""


class AppError(Exception):
    """Base of every error the application raises on purpose; `str(error)` is one clear sentence for the user."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED
    """What the process ends with."""
    code: ClassVar[str] = "error"
    """Stable word for scripts."""


# --- usage and settings: exit 2 ---------------------------------------------------------------------------------------


class UsageError(AppError):
    """Options that contradict each other or have no meaning."""

    exit_code = ExitCode.USAGE
    code = "usage"


class SettingsError(AppError):
    """The settings file or an environment variable has an unknown key or a wrong value."""

    exit_code = ExitCode.USAGE
    code = "settings"


class RegionError(AppError):
    """`--lines` out of range, or `--symbol` unknown or ambiguous (the sentence lists the candidates)."""

    exit_code = ExitCode.USAGE
    code = "region"


# --- the file: exit 3 -------------------------------------------------------------------------------------------------


class FileError(AppError):
    """A file that cannot be edited; base of the causes below."""

    exit_code = ExitCode.FILE
    code = "file"


class FileMissingError(FileError):
    """There is no such file, or its link points nowhere."""

    code = "file_missing"


class NotAFileError(FileError):
    """A folder, a device, a socket or a pipe."""

    code = "not_a_file"


class FileUnreadableError(FileError):
    """The system does not let us read the file."""

    code = "file_unreadable"


class FileEmptyError(FileError):
    """The file has no bytes, or nothing but a byte order mark."""

    code = "file_empty"


class FileBinaryError(FileError):
    """The file has NUL bytes and is not UTF-16."""

    code = "file_binary"


class FileUndecodableError(FileError):
    """The bytes are not text in the encoding; the sentence names the position and `--encoding`."""

    code = "file_undecodable"


class FileUnwritableError(FileError):
    """The file or its folder cannot be written, or a safe copy could not be made in full."""

    code = "file_unwritable"


class FileHardLinkedError(FileError):
    """The file has several names; replacing one would part it from the others."""

    code = "file_hard_linked"


class FileAttributesError(FileError):
    """Owner, mode or extended attributes could not be carried over to the new file."""

    code = "file_attributes"


class FileTooLongError(FileError):
    """Prompt and expected output exceed the model's context; the sentence has the numbers."""

    code = "file_too_long"


class StateError(FileError):
    """What we keep of our own (sessions, instructions) cannot be read or written."""

    code = "state"


class JournalError(FileError):
    """The journal of applied edits cannot be read or written, so nothing is applied."""

    code = "journal"


class ProposalError(FileError):
    """The proposals that wait for review cannot be read or written, or there is none of that name."""

    code = "proposal"


# --- model and engine: exit 4 -----------------------------------------------------------------------------------------


class ModelError(AppError):
    """The model is missing, damaged, unsupported, or could not be fetched."""

    exit_code = ExitCode.ENGINE
    code = "model"


class MemoryLimitError(AppError):
    """The model does not fit this machine's memory."""

    exit_code = ExitCode.ENGINE
    code = "memory"


class EngineUnreachableError(AppError):
    """The engine did not start, died, or does not answer."""

    exit_code = ExitCode.ENGINE
    code = "engine"


# --- the result: exit 1 -----------------------------------------------------------------------------------------------


class RefusedError(AppError):
    """A result that must not be applied; base of the causes below."""

    exit_code = ExitCode.REFUSED
    code = "refused"


class ReplyCutError(RefusedError):
    """The reply ended at the token limit."""

    code = "reply_cut"


class ReplyEndlessError(RefusedError):
    """The reply went round in a loop or grew past the budget."""

    code = "reply_endless"


class ReplyEmptyError(RefusedError):
    """The reply has no text."""

    code = "reply_empty"


class ReplyNotCodeError(RefusedError):
    """The reply has no file in it."""

    code = "reply_not_code"


class CheckFailedError(RefusedError):
    """A blocking check stopped the result; the sentence names the check."""

    code = "check_failed"


class UnencodableError(RefusedError):
    """The result has a character that the file's encoding lacks; the sentence names line and character."""

    code = "unencodable"


class PatchCheckError(RefusedError):
    """The diff, parsed back and applied, does not give the bytes it should."""

    code = "patch_check"


class DifferenceError(AppError):
    """Drafted and plain decoding gave different tokens: a fault of ours, or a machine that cannot be trusted."""

    code = "difference"


class InternalError(AppError):
    """A fault of ours that nothing else explains; the sentence names it."""

    code = "internal"


# --- nothing to do, conflicts, interrupts -----------------------------------------------------------------------------


class UnchangedError(AppError):
    """The result equals the file: no change needed."""

    exit_code = ExitCode.UNCHANGED
    code = "unchanged"


class ConflictError(AppError):
    """The file is no longer what was read; nothing was written, or what was written is named."""

    exit_code = ExitCode.CONFLICT
    code = "conflict"


class FileBusyError(ConflictError):
    """Another program holds the file open for writing: nothing was written."""

    code = "file_busy"


class NothingToUndoError(AppError):
    """The journal has no entry that fits the request."""

    exit_code = ExitCode.UNCHANGED
    code = "nothing_to_undo"


class InterruptedByUserError(AppError):
    """ctrl-C; nothing was written, or the sentence says what was."""

    exit_code = ExitCode.INTERRUPTED
    code = "interrupted"


# --- everything else --------------------------------------------------------------------------------------------------


def foreseen(error: BaseException) -> AppError:
    """The error itself if it is of this family, else the one that stands for it, with the exit code it ends with."""
    if isinstance(error, AppError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return InterruptedByUserError("Interrupted.")
    named = (isinstance(error, OSError) and error.strerror) or f"{type(error).__name__}: {error}"
    words = named.encode("unicode_escape").decode("ascii")  # nobody has looked at it
    if isinstance(error, OSError):  # files have sentences of their own by now: what is left is mostly a full disk
        return FileError(f"The output cannot be written: {words}.")
    return InternalError(f"An internal error, {words}.")
