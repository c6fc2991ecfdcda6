"""Which tokens the model's KV cache holds, and copies of what it held for other conversations.

A request begins with the longest beginning of its prompt that is known, live or copied; what another conversation had
there is copied first, so that two that take turns do not prefill each other away. Pure policy on token ids; a copy's
bytes are the model's own business. Invariants: after `enter` the model's cache holds exactly that many tokens of the
prompt; copies never exceed the budget; no copy is ever changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from editor_engine.decode.verify import common_prefix
from editor_engine.machine import available_bytes
from editor_engine.models.target import CacheSnapshot, TargetModel

WORTH = 64
"""Tokens of prefill that are worth a copy: about one pass, and far more than moving their bytes costs."""


@dataclass(frozen=True)
class Conversation:
    """What a cache holds for one conversation."""

    tokens: tuple[int, ...]
    prompt_length: int
    """How many of them were the last prompt; the reply follows."""

    def goes_on_in(self, prompt: Sequence[int]) -> bool:
        """True when the prompt has most of this conversation's: a further turn, or another try."""
        return 2 * common_prefix(self.tokens, prompt) > min(self.prompt_length, len(self.tokens))


@dataclass(frozen=True)
class _Copy:
    conversation: Conversation
    snapshot: CacheSnapshot


class PrefixCache:
    """The one that knows what is in the model's cache: nothing else may fill or truncate it between requests."""

    def __init__(
        self, model: TargetModel, budget_bytes: int, available: Callable[[], int | None] = available_bytes
    ) -> None:
        """At most `budget_bytes` of copies, and none that would take over half of what memory is `available`."""
        self._model = model
        self._budget = budget_bytes
        self._available = available
        self._live = Conversation((), 0)
        self._copies: list[_Copy] = []  # least recently used first

    @property
    def copied_bytes(self) -> int:
        """Memory the copies take."""
        return sum(copy.snapshot.data.nbytes for copy in self._copies)

    def enter(self, prompt: Sequence[int]) -> int:
        """Bring the model's cache to a beginning of the prompt, without its last token; returns how many tokens.

        Where it raises (a copy that cannot be put back), nothing has changed.
        """
        cached = common_prefix(self._live.tokens, prompt[:-1])
        best = max(self._copies, key=lambda copy: common_prefix(copy.conversation.tokens, prompt), default=None)
        found = 0 if best is None else common_prefix(best.conversation.tokens, prompt[:-1])
        if not self._live.goes_on_in(prompt):
            self._copy_live()
        if best is not None and found >= cached + WORTH:
            self._model.import_cache(best.snapshot)
            cached = found
            others = [copy for copy in self._copies if copy is not best]
            # One that goes on is live now, and copied again as it is then; one that had to make room has gone.
            stays = len(others) < len(self._copies) and not best.conversation.goes_on_in(prompt)
            self._copies = [*others, best] if stays else others
        self._model.truncate(cached)
        self._live = Conversation(tuple(prompt[:cached]), cached)
        return cached

    def leave(self, tokens: Sequence[int], prompt_length: int) -> None:
        """The model's cache holds these tokens now, the prompt's first."""
        self._live = Conversation(tuple(tokens), prompt_length)

    def _copy_live(self) -> None:
        if not self._budget:
            return
        length = min(len(self._live.tokens), self._most_tokens(len(self._live.tokens)))
        if length < WORTH:
            return
        tokens = self._live.tokens[:length]
        self._copies = [copy for copy in self._copies if not copy.conversation.goes_on_in(tokens)]
        needed = self._model.cache_bytes(length)
        while self._copies and self.copied_bytes + needed > self._budget:
            self._copies.pop(0)
        try:
            snapshot = self._model.export_cache(length)
        except MemoryError:  # copies only save time: without room there are none
            self._copies.clear()
            return
        self._copies.append(_Copy(Conversation(tokens, min(self._live.prompt_length, length)), snapshot))

    def _most_tokens(self, length: int) -> int:
        """How many of `length` tokens the budget and the machine have room for."""
        available = self._available()
        room = self._budget if available is None else min(self._budget, available // 2)
        needed = self._model.cache_bytes(length)
        return length if needed <= room else length * room // needed
