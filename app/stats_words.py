"""The figures of an edit under the names of the machine interface, and in words for people.

Knows how figures are called, not where they come from. Invariant: what is not known is null for programs and left out
for people.
"""

from app.terminal_text import visible
from editor_engine.events import DraftModelStats, Provenance, Stats
from editor_engine.memory import size_words


def stats_fields(stats: Stats) -> dict[str, object]:
    """Statistics under the names of the machine interface."""
    # An engine that says nothing of its drafts, or of where tokens came from, leaves the table empty; so does one that
    # has drafted or written nothing.
    drafters = None if not stats.by_drafter and stats.drafted != 0 else stats.by_drafter
    origins = None if not stats.by_provenance and stats.output_tokens != 0 else stats.by_provenance
    return {
        "prompt_tokens": stats.prompt_tokens,
        "cached_tokens": stats.cached_tokens,
        "output_tokens": stats.output_tokens,
        "ttft_s": stats.ttft_s,
        "prefill_tok_s": stats.prefill_tok_s,
        "decode_tok_s": stats.decode_tok_s,
        "wall_s": stats.wall_s,
        "passes": stats.passes,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "acceptance": stats.acceptance,
        "tokens_per_pass": stats.tokens_per_pass,
        "copied_share": stats.copied_share,
        "policy_tokens": None if origins is None else origins.get(Provenance.POLICY, 0),
        "by_drafter": None
        if drafters is None
        else {name: {"drafted": drafted, "accepted": accepted} for name, (drafted, accepted) in drafters.items()},
        "by_provenance": origins,
        "drafter_s": stats.drafter_s,
        "draft_model": None if stats.draft_model is None else _draft_model_fields(stats.draft_model),
        "prediction": None
        if stats.prediction is None
        else {"accepted": stats.prediction[0], "rejected": stats.prediction[1]},
        "peak_rss_bytes": stats.peak_rss_bytes,
        "mean_logprob": stats.mean_logprob,
        "rerun_share": stats.rerun_share,
    }


def _draft_model_fields(draft: DraftModelStats) -> dict[str, object]:
    return {
        "name": draft.name,
        "passes": draft.passes,
        "read_tokens": draft.read_tokens,
        "read_s": draft.read_s,
        "seconds": draft.seconds,
        "by_position": [{"verified": seen, "accepted": stood} for seen, stood in draft.by_position],
        "gain": draft.gain,
        "decision": draft.decision,
        "weights_bytes": draft.weights_bytes,
        "cache_bytes": draft.cache_bytes,
    }


def stats_lines(stats: Stats, verbose: bool) -> list[str]:
    """The figures of an edit in words; what is not known is left out."""
    # None: the engine does not say how many it read.
    read = "read   "
    read += (
        "the prompt" if stats.prompt_tokens is None else f"{stats.prompt_tokens - (stats.cached_tokens or 0)} tokens"
    )
    if stats.prefill_tok_s is not None:
        read += f" at {stats.prefill_tok_s:.1f} tok/s"
    if stats.ttft_s is not None:
        read += f", first token after {stats.ttft_s:.1f} s"
    wrote = "wrote  the reply" if stats.output_tokens is None else f"wrote  {stats.output_tokens} tokens"
    if stats.decode_tok_s is not None:
        wrote += f" at {stats.decode_tok_s:.1f} tok/s"
    if stats.tokens_per_pass is not None:
        wrote += f", {stats.passes} passes, {stats.tokens_per_pass:.2f} tokens a pass"
    lines = [read, wrote]
    if stats.acceptance is not None:
        drafts = f"drafts {stats.accepted} of {stats.drafted} accepted ({stats.acceptance:.0%})"
        if stats.copied_share is not None:
            drafts += f", {stats.copied_share:.0%} of the output copied from the file"
        lines.append(drafts)
    if stats.prediction is not None:
        used, unused = stats.prediction
        lines.append(f"       {used} of {used + unused} tokens sent as prediction were used")
    if stats.draft_model is not None:
        lines += draft_model_lines(stats.draft_model, verbose)
    if verbose:
        lines += [f"       {name}: {hit} of {all_}" for name, (all_, hit) in sorted(stats.by_drafter.items())]
        lines += [f"       {kind}: {count}" for kind, count in sorted(stats.by_provenance.items())]
    if stats.mean_logprob is not None:
        lines.append(f"       mean log-likelihood {stats.mean_logprob:.4f} nats a token")
    if stats.rerun_share is not None:
        lines.append(f"       {stats.rerun_share:.1%} of the positions were near ties and decided again in plain form")
    total = f"total  {stats.wall_s:.1f} s"
    if stats.peak_rss_bytes is not None:
        total += f", peak memory {stats.peak_rss_bytes / 2**30:.2f} GiB"
    return [*lines, total]


def draft_model_lines(draft: DraftModelStats, verbose: bool) -> list[str]:
    """What was decided about the draft model, and with `verbose` what it did."""
    lines = [f"       {visible(draft.decision)}"]
    if verbose and draft.passes:
        lines.append(
            f"       draft model: {draft.passes} passes in {draft.seconds:.1f} s, of that {draft.read_s:.1f} s to read "
            f"{draft.read_tokens} tokens"
        )
        if draft.by_position:
            shares = " ".join(f"{stood / seen:.0%}" for seen, stood in draft.by_position if seen)
            lines.append(f"       accepted by place in its drafts, the ones before it accepted: {shares}")
    if verbose:
        lines.append(
            f"       draft model's memory: weights {size_words(draft.weights_bytes, up=True)}, cache "
            f"{size_words(draft.cache_bytes, up=True)}"
        )
    return lines
