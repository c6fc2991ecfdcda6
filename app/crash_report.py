"""Keeps the report of a fault of ours where the user can find it.

Knows nothing of front ends. Invariant: never raises; the sentence says where the report is, or why there is none.
"""

import os

from app.errors import AppError
from app.paths import logs_dir, private_dir, shown


def write_report(report: str) -> str:
    """Add the text to this process's report and say where that is, in one sentence: the first fault explains others."""
    try:
        path = private_dir(logs_dir()) / f"crash-{os.getpid()}.txt"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as stream:
            stream.write(report)
    except (OSError, AppError) as error:
        return f"(The report could not be written: {error}.)"
    return f"Report: {shown(path)}"
