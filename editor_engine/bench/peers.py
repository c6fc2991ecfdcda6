"""Workload `peers`: our engine against llama.cpp on the same file, messages and threads, in turns, A B A B.

Knows the order of the runs and how figures become ratios; the engines are behind `peer_process`. Invariant: a ratio is
between runs of the same round; llama.cpp's best mode is the best of all of them, `none` included.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from editor_engine.bench import peer_llamacpp, peer_redraft
from editor_engine.bench.measure import Spread, ratios
from editor_engine.bench.peer_process import PeerFailedError, PeerJob, PeerReply, PeerRequest, run_job
from editor_engine.errors import RequestError

OURS, THEIRS = "redraft", "llama_cpp"
MODULES = {OURS: peer_redraft.__name__, THEIRS: peer_llamacpp.__name__}

Run = Callable[[str, PeerJob], list[PeerReply]]
"""(module, job) -> replies; `run_job` but in tests."""


@dataclass(frozen=True)
class PeerFigures:
    """All rounds; every list has one entry a round."""

    prefill: dict[str, Spread]
    """Engine to prompt tok/s of the bare prompt; empty when it was left out."""
    plain: dict[str, Spread]
    """Engine to tok/s without drafting after the bare prompt; empty when it was left out."""
    edit: dict[tuple[str, str], Spread]
    """(engine, mode) to decode tok/s over all edits of a round; empty when there were none."""
    replies: dict[tuple[str, str], tuple[PeerReply, ...]]
    """(engine, mode) to the replies of the first round: the bare prompt's first, then the edits'."""
    same_output: bool | None
    """Every edit of ours gave the same tokens drafted and plain, in every round; None without edits."""

    @property
    def best_mode(self) -> str | None:
        """llama.cpp's mode with the highest median on the edits."""
        theirs = {mode: spread for (engine, mode), spread in self.edit.items() if engine == THEIRS}
        return max(theirs, key=lambda mode: theirs[mode].median) if theirs else None

    def ratios(self) -> dict[str, Spread | None]:
        """The four ratios of the machine interface; None for what was left out."""
        found: dict[str, Spread | None] = dict.fromkeys(
            ("prefill_vs_llama_cpp", "plain_vs_llama_cpp", "edit_vs_best_llama_cpp", "edit_vs_plain")
        )
        if self.prefill:
            found["prefill_vs_llama_cpp"] = ratios(self.prefill[OURS].runs, self.prefill[THEIRS].runs)
            found["plain_vs_llama_cpp"] = ratios(self.plain[OURS].runs, self.plain[THEIRS].runs)
        if self.best_mode is not None:
            ours = self.edit[OURS, peer_redraft.DRAFTED].runs
            found["edit_vs_best_llama_cpp"] = ratios(ours, self.edit[THEIRS, self.best_mode].runs)
            found["edit_vs_plain"] = ratios(ours, self.edit[OURS, peer_redraft.PLAIN].runs)
        return found

    def fields(self) -> dict[str, object]:
        """`ratios` and `figures` of the machine interface."""
        figures: dict[str, dict[str, object]] = {OURS: {}, THEIRS: {}}
        for name, spreads in (("prefill_tok_s", self.prefill), ("plain_tok_s", self.plain)):
            for engine, spread in spreads.items():
                figures[engine][name] = spread.fields()
        for (engine, mode), replies in self.replies.items():
            edit = self.edit.get((engine, mode))
            figures[engine][mode] = {
                "edit_tok_s": edit.fields() if edit else None,
                "prompt_tokens": [reply.prompt_tokens for reply in replies],
                "output_tokens": [reply.output_tokens for reply in replies],
                "drafted": sum(reply.drafted for reply in replies),
                "accepted": sum(reply.accepted for reply in replies),
                "peak_rss_bytes": _peak(replies),
            }
        return {
            "ratios": {name: spread.fields() if spread else None for name, spread in self.ratios().items()},
            "figures": figures,
            "best_llama_cpp_mode": self.best_mode,
            "same_output_drafted_and_plain": self.same_output,
        }


def compare(
    job: PeerJob,
    bare: PeerRequest | None,
    modes: Sequence[str],
    rounds: int,
    progress: Callable[[str], None],
    run: Run = run_job,
) -> PeerFigures:
    """Run every engine and mode `rounds` times in turns.

    Args:
        job: model, threads, context, and the edits as its requests (may be empty); its mode is not looked at.
        bare: the prompt whose prefill and plain decoding are measured; None leaves both out.
        modes: llama.cpp's modes for the edits; `none` is always among them.
        rounds: at least 1.

    Raises PeerFailedError when an engine fails or gives no rate, RequestError when there is nothing to do.
    """
    if bare is None and not job.requests:
        raise RequestError("There is nothing to compare: neither a bare prompt nor an edit.")
    none = peer_llamacpp.NO_DRAFTS
    turns = [(OURS, peer_redraft.PLAIN), (THEIRS, none)]
    if job.requests:
        turns.append((OURS, peer_redraft.DRAFTED))
        turns += [(THEIRS, mode) for mode in modes if mode != none]
    heads = () if bare is None else (bare,)
    all_replies: dict[tuple[str, str], list[list[PeerReply]]] = {turn: [] for turn in turns}
    for number in range(1, rounds + 1):
        for engine, mode in turns:
            progress(f"round {number} of {rounds}: {engine} {mode}")
            bare_here = heads if mode in (peer_redraft.PLAIN, none) else ()
            requests = (*bare_here, *job.requests)
            replies = run(MODULES[engine], replace(job, mode=mode, requests=requests))
            all_replies[engine, mode].append(replies)
            rates = ", ".join(f"{reply.decode_tok_s or 0:.1f}" for reply in replies)
            progress(f"  decoded at {rates} tok/s")
    return _figures(all_replies, len(heads), bool(job.requests))


def _figures(replies: dict[tuple[str, str], list[list[PeerReply]]], heads: int, has_edits: bool) -> PeerFigures:
    undrafted = {OURS: replies[OURS, peer_redraft.PLAIN], THEIRS: replies[THEIRS, peer_llamacpp.NO_DRAFTS]}
    prefill: dict[str, Spread] = {}
    plain: dict[str, Spread] = {}
    if heads:
        for engine, rounds in undrafted.items():
            prefill[engine] = Spread(tuple(_known(answers[0].prefill_tok_s, engine) for answers in rounds))
            plain[engine] = Spread(tuple(_known(answers[0].decode_tok_s, engine) for answers in rounds))
    edits = {
        (engine, mode): [
            answers[heads if mode in (peer_redraft.PLAIN, peer_llamacpp.NO_DRAFTS) else 0 :] for answers in rounds
        ]
        for (engine, mode), rounds in replies.items()
    }
    rates: dict[tuple[str, str], Spread] = {}
    same: bool | None = None
    if has_edits:
        rates = {
            turn: Spread(tuple(edit_rate(answers, turn[0]) for answers in rounds)) for turn, rounds in edits.items()
        }
        ours = [[reply.digest for reply in answers] for turn in edits if turn[0] == OURS for answers in edits[turn]]
        same = all(digests == ours[0] for digests in ours)
    return PeerFigures(prefill, plain, rates, {turn: tuple(rounds[0]) for turn, rounds in replies.items()}, same)


def edit_rate(replies: Sequence[PeerReply], engine: str) -> float:
    """Decode tok/s over several replies: all tokens after the first emissions over all their time."""
    return sum(reply.output_tokens - 1 for reply in replies) / sum(_known(r.decode_s, engine) for r in replies)


def _known(value: float | None, engine: str) -> float:
    if not value:
        raise PeerFailedError(f"{engine} gave no rate: its reply had fewer than two tokens.")
    return value


def _peak(replies: Sequence[PeerReply]) -> int | None:
    """Peak memory of the process that gave `replies`."""
    return max((reply.peak_rss_bytes for reply in replies if reply.peak_rss_bytes), default=None)


def table(figures: PeerFigures) -> str:
    """For people."""
    lines = []
    for title, spreads in (("prefill", figures.prefill), ("plain", figures.plain)):
        lines += [f"{title:<8} {engine:<24} {spread.words(1):>22} tok/s" for engine, spread in spreads.items()]
    for (engine, mode), spread in figures.edit.items():
        replies = figures.replies[engine, mode]
        drafted = sum(reply.drafted for reply in replies)
        accepted = sum(reply.accepted for reply in replies)
        drafts = f", {accepted} of {drafted} drafted accepted" if drafted else ""
        lines.append(f"{'edit':<8} {engine + ' ' + mode:<24} {spread.words(1):>22} tok/s{drafts}")
    for (engine, mode), replies in figures.replies.items():
        peak = _peak(replies)
        if peak is not None:
            lines.append(f"{'memory':<8} {engine + ' ' + mode:<24} {peak / 2**30:>22.2f} GiB at its peak")
    lines.append("")
    for name, ratio in figures.ratios().items():
        if ratio is not None:
            against = f" ({figures.best_mode})" if name == "edit_vs_best_llama_cpp" else ""
            lines.append(f"{name.replace('_', ' ') + against:<40} {ratio.words()} in {len(ratio.runs)} runs")
    if figures.same_output is not None:
        lines.append(f"{'drafted output equals plain output':<40} {'yes' if figures.same_output else 'NO'}")
    return "\n".join(lines)
