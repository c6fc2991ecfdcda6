"""What an edit says while it runs: one interface, for people on stderr or for programs as JSON lines on stdout.

Knows how things are worded, not what is done. Invariant: the JSON reporter writes nothing but JSON lines, the last of
them of type `result`; the other writes nothing to stdout.
"""

from collections.abc import Sequence
from importlib.metadata import version
from statistics import median
from typing import Protocol, TextIO

from app.editing.apply import Receipt
from app.editing.checks import CheckReport, CheckWarning
from app.editing.diff import Hunk
from app.editing.pipeline import EditPlan, HunkReady
from app.errors import AppError, ExitCode
from app.json_events import JsonWriter, plain_data
from app.proof import Proof
from app.rates import Rates
from app.stats_words import stats_fields, stats_lines
from app.terminal_text import visible
from editor_engine.events import EngineEvent, Pass, Prefill, Started, Stats, Text

LOW_ACCEPTANCE = 0.5
"""Share of accepted drafts below which an edit is told what that cost."""

PLAIN_STEPS = 3
"""Passes without a draft from which plain decoding's time is estimated."""


class Reporter(Protocol):
    """Hears of everything that happens, in order."""

    def planned(self, plan: EditPlan, rates: Rates | None, stdout: TextIO) -> None: ...
    def started(self, plan: EditPlan, event: Started, expected_s: float | None) -> None: ...
    def progress(self, plan: EditPlan, event: EngineEvent | HunkReady) -> None: ...
    def replied(self, stats: Stats) -> None: ...
    def proved(self, proof: Proof) -> None: ...
    def proposed(self, hunks: Sequence[Hunk], report: CheckReport) -> None: ...
    def note(self, sentence: str) -> None: ...
    def finished(self, outcome: str, receipt: Receipt | None = None) -> None: ...
    def failed(self, error: AppError) -> None: ...


class JsonReporter:
    """The machine interface."""

    def __init__(self, stream: TextIO) -> None:
        self._lines = JsonWriter(stream)
        self._stats: Stats | None = None
        self._proof: Proof | None = None
        self._hunks = 0
        self._report: CheckReport | None = None

    def planned(self, plan: EditPlan, rates: Rates | None, stdout: TextIO) -> None:
        expected_s = None if rates is None else rates.seconds(plan.budget)
        prompt = {"messages": plan.prompt.messages, "prefill": plan.prompt.prefill}
        self._start(plan, plan.budget.prompt, None, plan.budget.expected, expected_s, prompt=prompt)
        self._lines.result(outcome="declined", exit_code=ExitCode.OK, **self._found(None))

    def started(self, plan: EditPlan, event: Started, expected_s: float | None) -> None:
        self._start(
            plan,
            event.prompt_tokens,
            event.cached_tokens,
            event.source_tokens,
            expected_s,
            draft_model=event.draft_model,
        )

    def _start(
        self,
        plan: EditPlan,
        prompt_tokens: int,
        cached_tokens: int | None,
        expected_tokens: int,
        expected_s: float | None,
        draft_model: str | None = None,
        **more: object,
    ) -> None:
        document, engine = plan.document, plan.engine
        self._lines.write(
            "start",
            version=version("redraft"),
            file={
                "path": document.name,
                "sha256": document.sha256,
                "lines": len(document.lines),
                "encoding": document.codec.label,
                "newline": document.newline,
            },
            model={
                "id": engine.model_id,
                "sha256": engine.sha256,
                "device": engine.device,
                "threads": engine.threads,
                "exactness": engine.exactness,
                "policy": engine.policy,
                "reached": engine.reached,
                "draft_model": draft_model,
                "backend": engine.backend,
                "arithmetic": engine.arithmetic,
                "choice": engine.choice,
                "notes": engine.notes,
            },
            prompt_tokens=prompt_tokens,
            cached_tokens=cached_tokens,
            expected_tokens=expected_tokens,
            expected_s=expected_s,
            estimated=plan.budget.estimated,
            max_tokens=plan.budget.max_tokens,
            context_tokens=plan.budget.context,
            **more,
        )

    def progress(self, plan: EditPlan, event: EngineEvent | HunkReady) -> None:
        if isinstance(event, Prefill):
            self._lines.write("prefill", done=event.done, total=event.total)
        elif isinstance(event, Pass):
            self._lines.write(
                "pass",
                rows=event.rows,
                drafted=event.drafted,
                accepted=event.accepted,
                emitted=event.emitted,
                drafter=event.drafter,
                source_line=event.source_line,
                ms=round(event.ms, 3),
                draft_ms=round(event.draft_ms, 3),
            )
        elif isinstance(event, Text):
            self._lines.write("text", text=event.text, spans=event.spans)
        elif isinstance(event, HunkReady):
            self._hunk(event.hunk)

    def _hunk(self, hunk: Hunk) -> None:
        self._hunks += 1
        self._lines.write("hunk", **hunk_fields(hunk))

    def replied(self, stats: Stats) -> None:
        self._stats = stats

    def proved(self, proof: Proof) -> None:
        self._proof = proof

    def proposed(self, hunks: Sequence[Hunk], report: CheckReport) -> None:
        self._report = report
        for hunk in hunks[self._hunks :]:  # the others were final, and told of, before
            self._hunk(hunk)
        for warning in report.warnings:
            self._lines.write("warning", **warning_fields(warning))

    def note(self, sentence: str) -> None:
        """Notes are talk; programs have the fields."""

    def finished(self, outcome: str, receipt: Receipt | None = None) -> None:
        self._lines.result(outcome=outcome, exit_code=ExitCode.OK, **self._found(receipt))

    def failed(self, error: AppError) -> None:
        self._lines.failed(error, **self._found(None))

    def _found(self, receipt: Receipt | None) -> dict[str, object]:
        """What the result says of the edit."""
        return {
            "hunks": self._hunks,
            "stats": None if self._stats is None else stats_fields(self._stats),
            "warnings": [warning_fields(warning) for warning in self._report.warnings] if self._report else [],
            "blast_radius": self._report.blast_radius if self._report else None,
            "receipt": receipt,
            "proof": None if self._proof is None else {"exactness": "checked", **plain_data(self._proof)},
        }


def warning_fields(warning: CheckWarning) -> dict[str, object]:
    """A warning under the names of the machine interface."""
    return {
        "code": warning.code,
        "message": warning.message,
        "lines": warning.lines,
        "blocking": warning.blocking,
    }


def hunk_fields(hunk: Hunk) -> dict[str, object]:
    """A hunk under the names of the machine interface."""
    return {
        "index": hunk.index,
        "header": hunk.header,
        "old_start": hunk.old_start,
        "old_lines": hunk.old_lines,
        "new_start": hunk.new_start,
        "new_lines": hunk.new_lines,
        "lines": hunk.spoken_lines(),
    }


class TalkReporter:
    """Words for people on stderr: one line that follows the work on a terminal, and figures at the end."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, verbose: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._verbose = verbose
        self._live = stream.isatty() and not quiet
        self._line_open = False
        self._emitted = self._drafted = self._accepted = self._characters = 0
        self._decode_ms = self._rejected_ms = 0.0
        self._single_ms: list[float] = []  # of passes without a draft: what a plain step takes

    def planned(self, plan: EditPlan, rates: Rates | None, stdout: TextIO) -> None:
        prompt = "".join(f"[{message.role}]\n{message.content}\n" for message in plan.prompt.messages)
        prompt += f"[assistant]\n{plan.prompt.prefill}"
        stdout.write("\n".join(map(visible, prompt.split("\n"))) if stdout.isatty() else prompt)
        budget = plan.budget
        time = "unknown before the first edit" if rates is None else f"some {max(rates.seconds(budget), 1):.0f} s"
        self.note(
            f"Prompt {budget.prompt} tokens{' (estimated)' if budget.estimated else ''}, expected output "
            f"{budget.expected}, at most {budget.max_tokens}; context "
            f"{'unknown' if budget.context is None else budget.context}. Expected time: {time}."
        )
        self._about_engine(plan)

    def started(self, plan: EditPlan, event: Started, expected_s: float | None) -> None:
        engine = plan.engine
        where = "" if engine.where is None else f" on {engine.where}"
        where += "" if engine.threads is None else f", {engine.threads} threads"
        cached = "" if event.cached_tokens is None else f" ({event.cached_tokens} cached)"
        about = "about " if plan.budget.estimated else ""
        self.note(
            f"{engine.model_id}{where}, {engine.exactness}: "
            f"{about}{event.prompt_tokens} prompt tokens{cached}, about {event.source_tokens} to write"
            + ("." if expected_s is None else f", some {max(expected_s, 1):.0f} s.")
        )
        self._about_engine(plan)

    def _about_engine(self, plan: EditPlan) -> None:
        if self._verbose:
            self.note(f"Engine: {plan.engine.reached}.")
        for note in plan.engine.told:
            self.note(note)

    def progress(self, plan: EditPlan, event: EngineEvent | HunkReady) -> None:
        if isinstance(event, Prefill):
            self._status(f"reading {event.done}/{event.total} tokens")
        elif isinstance(event, Pass):
            self._emitted += event.emitted
            self._drafted += event.drafted
            self._accepted += event.accepted
            self._decode_ms += event.ms + event.draft_ms
            self._rejected_ms += event.ms * (event.drafted - event.accepted) / event.rows
            if event.rows == 1:
                self._single_ms.append(event.ms)
            self._status(self._decode_line(plan, event))
        elif isinstance(event, Text) and not self._emitted:  # an engine that does not tell of its passes
            self._characters += len(event.text)
            self._status(f"writing {self._characters} characters")

    def _decode_line(self, plan: EditPlan, event: Pass) -> str:
        speed = self._emitted / self._decode_ms * 1000 if self._decode_ms else 0.0
        share = f", {self._accepted / self._drafted:.0%} of drafts accepted" if self._drafted else ""
        where = "" if event.source_line is None else f", line {event.source_line}/{len(plan.document.lines)}"
        return f"writing {self._emitted} tokens, {speed:.1f} tok/s{share}{where}"

    def _status(self, text: str) -> None:
        if self._live:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()
            self._line_open = True

    def _clear(self) -> None:
        if self._line_open:
            self._stream.write("\r\x1b[K")
            self._line_open = False

    def replied(self, stats: Stats) -> None:
        self._clear()
        if not self._quiet:
            for line in stats_lines(stats, self._verbose):
                self._stream.write(line + "\n")
            self._advise(stats)

    def proved(self, proof: Proof) -> None:
        self.note(proof.sentence())

    def _advise(self, stats: Stats) -> None:
        """What low acceptance cost, and what to do about it."""
        if stats.acceptance is None or stats.acceptance >= LOW_ACCEPTANCE or not self._decode_ms:
            return  # without passes (another program's engine) nobody knows what it cost
        advice = "--symbol or --lines leaves less to rewrite."
        if len(self._single_ms) >= PLAIN_STEPS:
            plain_s = median(self._single_ms) * self._emitted / 1000
            lost_s = self._decode_ms / 1000 - plain_s
            if lost_s > 0:
                cost = (
                    f"drafting cost some {lost_s:.1f} s over the {plain_s:.1f} s that plain decoding would have taken"
                )
                advice = f"--no-draft gives the same output; {advice}"
            else:
                cost = f"drafting still saved some {-lost_s:.1f} of {plain_s:.1f} s"
        else:
            cost = f"the others took some {self._rejected_ms / 1000:.1f} of {self._decode_ms / 1000:.1f} s of decoding"
            advice = f"Where an edit rewrites most of a file, --no-draft gives the same output; {advice}"
        self.note(f"Only {stats.acceptance:.0%} of the drafted tokens were accepted; {cost}. {advice}")

    def proposed(self, hunks: Sequence[Hunk], report: CheckReport) -> None:
        for warning in report.warnings:
            self._say(f"{'refused' if warning.blocking else 'warning'} ({warning.code}): {warning.message}")

    def note(self, sentence: str) -> None:
        if not self._quiet:
            self._say(sentence)

    def _say(self, sentence: str) -> None:
        self.print_line(visible(sentence))

    def print_line(self, line: str) -> None:
        """One line above the status line; `line` is safe for a terminal already."""
        self._clear()
        self._stream.write(line + "\n")
        self._stream.flush()

    def finished(self, outcome: str, receipt: Receipt | None = None) -> None:
        if receipt is not None:
            guard = "" if receipt.guarded else " (this file system cannot exchange names: plain rename)"
            outside = "identical" if receipt.outside_identical else "NOT identical"
            carried = "; the file had changed meanwhile, and the hunks were carried over" if receipt.rebased else ""
            self.note(
                f"Applied to {visible(receipt.path)}{guard}{carried}; bytes outside the hunks {outside}; "
                f"`redraft undo` takes it back."
            )
        elif outcome == "declined":
            self.note("Nothing was written.")

    def failed(self, error: AppError) -> None:
        self._say(f"redraft: {error}")
