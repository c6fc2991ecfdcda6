"""Who drafts for the requests of one engine, and how the model's tokens are chosen under that.

Knows which parts there are and how they are put together; what each does is in its own module. Invariant: but for the
rejection rule, which is asked for at load, the choice of drafters never changes a token.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from editor_engine.decode.choosing import Chooser
from editor_engine.decode.cost_memory import CostMemory
from editor_engine.decode.draft_pair import DraftPair, Use
from editor_engine.decode.model_drafter import ModelDrafter
from editor_engine.decode.rejection import KeyedDraws, RejectionChooser, RejectionRule
from editor_engine.draft.chain import ChainDrafter
from editor_engine.draft.drafter import Drafter
from editor_engine.draft.pass_cost import PassCost
from editor_engine.draft.renames import Words
from editor_engine.events import DraftModelStats
from editor_engine.models.sampling import Sampling
from editor_engine.models.target import ModelInfo, TargetModel
from editor_engine.request_tokens import TokenisedRequest
from editor_engine.requests import CompletionRequest

DrafterFactory = Callable[[Sequence[int], Sequence[int], Collection[int]], Drafter]
"""(prompt ids, source ids, stop ids) -> drafter for one request."""


class Drafting:
    """The chain of one engine."""

    def __init__(
        self,
        model: TargetModel,
        words: Words,
        stop_ids: Collection[int],
        cache_folder: Path | None,
        pair: DraftPair | None,
        draft_rule: str,
        clock: Callable[[], float],
    ) -> None:
        """`cache_folder` is the model file's own: what passes cost is kept there. `draft_rule`: see `EngineConfig`."""
        self.pair = pair
        self._model = model
        self._stop_ids = stop_ids
        self._draft_rule = draft_rule
        self._clock = clock
        self._costs = CostMemory(model.info, cache_folder)
        self.make: DrafterFactory = partial(ChainDrafter, cost=self._costs.cost, words=words)
        """What comes before the draft model; tests and the benchmark put others there."""

    @property
    def costs(self) -> PassCost:
        """Of the target's passes, corrected by every request's."""
        return self._costs.cost

    @property
    def model_name(self) -> str | None:
        """Of the draft model; None without one."""
        return None if self.pair is None else self.pair.model.info.name

    def promised(self, info: ModelInfo) -> ModelInfo:
        """Facts of the target under this drafting: by the rejection rule drawn tokens keep the distribution only."""
        if self.pair is None or self._draft_rule != "rejection" or info.guarantee != "exact":
            return info
        return replace(info, guarantee="exact when greedy")

    def chooser(self, request: CompletionRequest) -> Chooser:
        """How the tokens of a request are chosen: greedy, by keyed draws, or by the rejection rule."""
        drawn = request.temperature > 0 and request.draft and self.pair is not None
        if drawn and self._draft_rule == "rejection":
            return RejectionChooser(self._model, RejectionRule(request.temperature, KeyedDraws(request.seed)))
        return Chooser(self._model, Sampling(request.temperature, request.seed), request.score)

    def drafter(self, request: CompletionRequest, tokens: TokenisedRequest, choose: Chooser) -> Drafter | None:
        """Who drafts for a request whose tokens `choose` chooses; None where nobody is to."""
        if not request.draft:
            return None
        chain = self.make(tokens.prompt, tokens.source, self._stop_ids)
        if self.pair is None or self.pair.use is Use.NEVER:
            return chain
        rule = choose.rule if isinstance(choose, RejectionChooser) else None
        # What a draft model gains depends on what is written, and on how sure of its choice the target is.
        kind = f"{'edit' if tokens.source else 'text'} {self._draft_rule if request.temperature > 0 else 'greedy'}"
        stop_ids, most = self._stop_ids, request.max_tokens
        return ModelDrafter(chain, self.pair, tokens.prompt, stop_ids, self.costs, kind, most, self._clock, rule)

    def interrupt(self) -> None:
        """Make a draft model's running and next pass raise CancelledError; callable from any thread."""
        if self.pair is not None:
            self.pair.model.interrupt()

    def rest(self) -> None:
        """A request is over: undo `interrupt`, and keep what was learned."""
        self._costs.save()
        if self.pair is not None:
            self.pair.model.resume()
            self.pair.save()


def figures(drafter: Drafter | None) -> DraftModelStats | None:
    """What a draft model did in a request that is over; None where there was none."""
    return drafter.finish() if isinstance(drafter, ModelDrafter) else None
