"""What other engines draft, simulated: n-gram lookup over prompt and output, blind to the position in the file.

Each peer takes the last n tokens, longest n first, and proposes what followed an earlier occurrence. Parameters as
measured on the engines themselves. Knows nothing of source, cost or provenance. Invariant: an n-gram is looked up among
all earlier places, and the first or the last of them wins as the peer does it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from editor_engine.bench.replay import DrafterOfTask, TokenTask
from editor_engine.draft.chain import ChainDrafter
from editor_engine.draft.drafter import Draft, Drafter, Origin
from editor_engine.draft.pass_cost import PassCost
from editor_engine.events import Provenance


@dataclass(frozen=True)
class PeerRule:
    """How one engine looks up its drafts."""

    sizes: tuple[int, ...]
    """n-gram sizes tried, in this order."""
    length: int
    """Tokens drafted."""
    latest: bool
    """The latest occurrence wins; False: the earliest (leftmost)."""


PEER_RULES: Mapping[str, PeerRule] = {
    "huggingface": PeerRule((2, 1), 10, latest=False),
    "prompt-lookup-3": PeerRule((3, 1), 10, latest=False),
    "vllm": PeerRule((5, 4, 3, 2), 5, latest=False),
    "ngram-simple": PeerRule((12,), 48, latest=True),
    "ngram-mod": PeerRule((24,), 63, latest=True),
    "long-match-63": PeerRule((8, 7, 6, 5, 4), 63, latest=True),
}


class PeerDrafter:
    """Implements Drafter by one rule."""

    def __init__(self, rule: PeerRule, prompt_ids: Sequence[int]) -> None:
        self._rule = rule
        self._tokens: list[int] = []
        self._followers: dict[tuple[int, ...], int] = {}
        for token in prompt_ids:
            self._append(token)

    def draft(self, room: int) -> Draft:
        """What followed the last tokens earlier, whatever it costs."""
        for size in self._rule.sizes:
            place = self._followers.get(tuple(self._tokens[-size:])) if len(self._tokens) >= size else None
            if place is not None:
                tokens = tuple(self._tokens[place : place + min(self._rule.length, room)])
                return Draft(tokens, "peer") if tokens else Draft()
        return Draft()

    def observe(self, draft: Draft, accepted: int, emitted: Sequence[int], pass_s: float | None) -> list[Origin]:
        """Take the tokens; nothing else is learned."""
        for token in emitted:
            self._append(token)
        return [Origin(Provenance.DRAFTED if i < accepted else Provenance.GENERATED, None) for i in range(len(emitted))]

    def _append(self, token: int) -> None:
        end = len(self._tokens)
        for size in self._rule.sizes:
            if end >= size:
                gram = tuple(self._tokens[end - size : end])
                if self._rule.latest:
                    self._followers[gram] = end
                else:
                    self._followers.setdefault(gram, end)
        self._tokens.append(token)


def _peer(rule: PeerRule) -> DrafterOfTask:
    return lambda task, cost: PeerDrafter(rule, task.prompt)


def _redraft(task: TokenTask, cost: PassCost) -> Drafter:
    return ChainDrafter(task.prompt, task.source, (), cost=cost, words=task.words)


DRAFTERS: Mapping[str, DrafterOfTask] = {
    **{name: _peer(rule) for name, rule in PEER_RULES.items()},
    "redraft": _redraft,
}
"""Everything a replay compares, ours last."""

CURVES: Mapping[str, Callable[[], PassCost]] = {"flat": PassCost.flat, "avx2": PassCost.avx2}
"""Built-in cost curves by name."""
