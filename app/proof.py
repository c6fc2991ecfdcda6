"""`edit --prove`: the same edit decoded once more the other way, and both outputs compared.

Drafted decoding is held against plain decoding, or with `--no-draft` the other way round. Knows the engine through its
client only. Invariant: "checked" is said after both ways were run to their end and gave the same; where an engine does
not name its tokens, the text alone is compared, and that is said.
"""

from contextlib import aclosing
from dataclasses import dataclass, replace

from app.editing.pipeline import EditPlan
from app.engine_client import EngineClient
from app.errors import DifferenceError, EngineUnreachableError
from editor_engine.bench.measure import first_difference
from editor_engine.events import Finished, Text
from editor_engine.requests import CancelFlag


@dataclass(frozen=True)
class Proof:
    """Both ways were run and agreed."""

    tokens: int | None
    """Equal token ids; None where the engine does not name them and only the text was compared."""
    drafted_s: float
    """Whole request, prefill included; the second way finds the prompt in the cache."""
    plain_s: float

    def sentence(self) -> str:
        """For people."""
        what = "the text" if self.tokens is None else f"all {self.tokens} token ids"
        return (
            f"checked: {what} of the reply came out the same with drafting on ({self.drafted_s:.1f} s) and off "
            f"({self.plain_s:.1f} s)."
        )


class Witness:
    """Takes down one reply while it comes, and proves it afterwards."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._finished: Finished | None = None

    def see(self, event: object) -> None:
        """An event of the edit, in order; of no interest but text and end."""
        if isinstance(event, Text):
            self._text.append(event.text)
        elif isinstance(event, Finished):
            self._finished = event

    async def prove(self, plan: EditPlan, client: EngineClient) -> Proof:
        """Decode the edit of `plan` the other way.

        Raises DifferenceError when the outputs differ, EngineUnreachableError without an end, and what the client
        raises.
        """
        draft = plan.order.draft
        request = plan.prompt.request(plan.budget.max_tokens, draft=draft, score=plan.order.score)
        second = Witness()
        async with aclosing(client.complete(replace(request, draft=not draft), CancelFlag())) as events:
            async for event in events:
                second.see(event)
        return _compared(*((self, second) if draft else (second, self)))


def _compared(drafted: Witness, plain: Witness) -> Proof:
    """Raises DifferenceError with the first place that differs."""
    with_drafts, without = drafted._finished, plain._finished
    if with_drafts is None or without is None:
        raise EngineUnreachableError("The engine ended its answer without saying why; nothing was proved.")
    named = bool(with_drafts.token_ids and without.token_ids)
    if named:
        difference = first_difference(without.token_ids, with_drafts.token_ids)
        if difference is not None:
            raise DifferenceError(
                f"Drafting changed the output at token {difference.index}: plain decoding gave {difference.left}, "
                f"drafting {difference.right}; nothing was written."
            )
    texts = ["".join(side._text) for side in (plain, drafted)]
    if texts[0] != texts[1]:
        at = first_difference(*(list(map(ord, text)) for text in texts))
        raise DifferenceError(
            f"Drafting changed the output at character {0 if at is None else at.index}; nothing was written."
        )
    tokens = len(without.token_ids) if named else None
    return Proof(tokens, with_drafts.stats.wall_s, without.stats.wall_s)
