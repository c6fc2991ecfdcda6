"""`redraft verify`: the built-in prompts decoded with drafting on and off, token by token, and one hash of all tokens.

The cases are in `app.bench.identity_cases`, the comparison in `editor_engine.bench.identity`. Invariant: exit 0 means
that every case was equal; the hash depends on the model file, the contract version and `--tokens` only, never on the
threads or the kernel variant.
"""

import click

from app.bench.answering import answering, load_model, model_and_machine, pair_options
from app.errors import DifferenceError
from app.load_options import Given

CONTEXT = 2048
"""Tokens the cache holds: the longest case and its reply."""
MOST_TOKENS = 1024


@click.command()
@pair_options
@click.option(
    "--tokens",
    type=click.IntRange(1, MOST_TOKENS),
    default=96,
    show_default=True,
    help="Most output tokens of a case; hashes are comparable at the same number only.",
)
@click.option("--hostile", is_flag=True, help="Also draft truth, nonsense and what cannot be; takes longer.")
def verify(load: Given, isa: str | None, tokens: int, hostile: bool, as_json: bool) -> None:
    """Decode built-in prompts with and without drafting, and compare the token ids.

    With a draft model (--draft-model, or the settings) its drafts are verified, too. Exit code 1 and the place of the
    first difference when they are not the same. Two machines agree when their token hashes are equal.
    """
    with answering("verify", as_json) as output:
        # The engine brings numpy and the native core: 0.15 s that `--help` must not pay.
        from app.bench.identity_cases import identity_cases
        from editor_engine.bench.identity import Paired, check_identity, table
        from editor_engine.bench.identity_drafters import before_a_model, hostile_drafters, own_drafters

        parts, model_id = load_model(load, isa, CONTEXT, output, paired=True)
        info, paired = parts.model.info, None
        drafters = dict(own_drafters(info.isa, parts.tokenizer))
        if hostile:
            drafters |= hostile_drafters(info.vocab_size)
        more: dict[str, object] = {"most_tokens": tokens, "drafters": list(drafters)}
        if parts.pair is not None:
            paired, draft = Paired(parts.pair, before_a_model(info.isa, parts.tokenizer)), parts.pair.model.info
            more |= {
                "drafters": [*drafters, *paired.before],
                "draft_model": draft.name,
                "draft_model_sha256": draft.sha256,
            }
        conditions = model_and_machine(parts, model_id, **more)
        figures = check_identity(
            parts.model, parts.tokenizer, parts.template, identity_cases(tokens), drafters, output.progress, paired
        )
        found = figures.first_difference
        verdict = None
        if found is not None:
            verdict = DifferenceError(
                f"Drafting changed the output: {found['case']} differs at token {found['position']} with the drafter "
                f"{found['drafter']!r}; please report it with the model and the processor."
            )
        output.answer(conditions, table(figures), figures.fields(), verdict)
    if verdict is not None:
        raise verdict
