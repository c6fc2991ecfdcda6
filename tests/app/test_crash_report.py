"""The report of a fault: what broke first stays in it."""

from app.crash_report import write_report
from app.paths import logs_dir


def test_a_second_fault_does_not_hide_the_first() -> None:
    assert write_report("first\n") == write_report("second\n")
    (report,) = logs_dir().glob("crash-*.txt")
    assert report.read_text() == "first\nsecond\n" and report.stat().st_mode & 0o777 == 0o600
