"""What people are told: one live line on a terminal, figures at the end, nothing that a terminal would obey."""

import io
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from app.editing.apply import Receipt
from app.editing.pipeline import EditPlan
from app.errors import ConflictError
from app.reporter import TalkReporter
from app.stats_words import stats_lines
from editor_engine.events import Pass, Provenance, Stats
from tests.support.headless_edit import CHANGED, SOURCE, run_edit
from tests.support.scripted_client import ScriptedClient, fenced

STATS = Stats(
    prompt_tokens=700,
    cached_tokens=100,
    output_tokens=300,
    ttft_s=2.5,
    prefill_tok_s=240.0,
    decode_tok_s=60.0,
    wall_s=7.5,
    passes=75,
    drafted=250,
    accepted=225,
    by_drafter={"redraft": (250, 225)},
    by_provenance={Provenance.COPIED: 210, Provenance.GENERATED: 90},
    peak_rss_bytes=3 << 29,
)
RECEIPT = Receipt("/a/b\x1b[2J.py", "0" * 64, "1" * 64, True, True, "7-abc")


def talk(quiet: bool = False) -> tuple[TalkReporter, io.StringIO]:
    stream = io.StringIO()
    return TalkReporter(stream, quiet=quiet), stream


def test_the_figures_of_an_edit() -> None:
    assert stats_lines(STATS, verbose=False) == [
        "read   600 tokens at 240.0 tok/s, first token after 2.5 s",
        "wrote  300 tokens at 60.0 tok/s, 75 passes, 4.00 tokens a pass",
        "drafts 225 of 250 accepted (90%), 70% of the output copied from the file",
        "total  7.5 s, peak memory 1.50 GiB",
    ]


def test_what_is_not_known_is_left_out() -> None:
    bare = Stats(700, 0, 0, None, None, None, 0.5, 0, 0, 0)
    assert stats_lines(bare, verbose=True) == ["read   700 tokens", "wrote  0 tokens", "total  0.5 s"]


def test_verbose_says_where_tokens_came_from() -> None:
    lines = stats_lines(STATS, verbose=True)
    assert "       redraft: 225 of 250" in lines
    assert "       copied: 210" in lines and "       generated: 90" in lines


@pytest.mark.parametrize(
    ("receipt", "words"),
    [
        (RECEIPT, "bytes outside the hunks identical"),
        (replace(RECEIPT, outside_identical=False), "NOT identical"),
        (replace(RECEIPT, guarded=False), "plain rename"),
        (replace(RECEIPT, rebased=True), "changed meanwhile"),
    ],
)
def test_a_receipt_in_words(receipt: Receipt, words: str) -> None:
    reporter, stream = talk()
    reporter.finished("applied", receipt)
    assert words in stream.getvalue()
    assert r"/a/b\x1b[2J.py" in stream.getvalue()
    assert "`redraft undo" in stream.getvalue()


def test_errors_are_said_even_when_quiet_and_escaped() -> None:
    reporter, stream = talk(quiet=True)
    reporter.note("a note")
    reporter.finished("declined")
    reporter.replied(STATS)
    reporter.failed(ConflictError("changed: \x1b[2J\nmore"))
    assert stream.getvalue() == "redraft: changed: \\x1b[2J\\nmore\n"


LOW = replace(STATS, drafted=300, accepted=60)
REJECTED = Pass(4, 3, 0, 1, "ngram", None, 400.0)
SINGLE = Pass(1, 0, 0, 1, None, None, 100.0)
WIDE = Pass(64, 63, 31, 32, "ngram", None, 400.0)


@pytest.mark.parametrize(
    ("passes", "said", "no_draft"),
    [
        ([REJECTED] * 2, "the others took some 0.6 of 0.8 s of decoding.", True),
        ([SINGLE] * 3 + [REJECTED] * 10, "drafting cost some 3.0 s over the 1.3 s that plain decoding would", True),
        ([SINGLE] * 3 + [WIDE] * 5, "drafting still saved some 14.0 of 16.3 s.", False),
    ],
)
def test_low_acceptance_says_what_it_cost_and_what_to_do(passes: list[Pass], said: str, no_draft: bool) -> None:
    reporter, stream = talk()
    for one in passes:
        reporter.progress(cast(EditPlan, None), one)  # the plan is for a line of the file alone
    reporter.replied(LOW)
    (advice,) = [line for line in stream.getvalue().splitlines() if line.startswith("Only 20% of the drafted tokens")]
    assert said in advice and ("--no-draft gives the same output" in advice) == no_draft
    assert advice.endswith("--symbol or --lines leaves less to rewrite.")


@pytest.mark.parametrize("stats", [STATS, replace(STATS, drafted=0, accepted=0), replace(STATS, accepted=125)])
def test_no_advice_where_half_of_the_drafts_came_true_or_none_were_made(stats: Stats) -> None:
    reporter, stream = talk()
    reporter.replied(stats)
    assert "Only " not in stream.getvalue()
    quiet, silence = talk(quiet=True)
    quiet.replied(LOW)
    assert silence.getvalue() == ""


def test_a_terminal_has_one_live_line_that_is_gone_at_the_end(file: Path) -> None:
    err = run_edit(ScriptedClient(fenced(CHANGED)), file, terminal=True).err
    assert "\r\x1b[Kwriting " in err
    assert f"tok/s, 100% of drafts accepted, line 13/{len(SOURCE.splitlines())}" in err
    last_live = err.rindex("\r\x1b[Kwriting ")
    assert err.index("\r\x1b[K", last_live + 1) < err.index("read ", last_live)


def test_no_escape_sequence_off_a_terminal(file: Path) -> None:
    err = run_edit(ScriptedClient(fenced(CHANGED)), file).err
    assert "\x1b" not in err and "\r" not in err


def test_no_color_is_honoured(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert b"\x1b[32m+" in run_edit(ScriptedClient(fenced(CHANGED)), file, terminal=True).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert b"\x1b" not in run_edit(ScriptedClient(fenced(CHANGED)), file, terminal=True).out
