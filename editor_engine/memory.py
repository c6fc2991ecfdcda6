"""What a load takes of each memory against what is there: the numbers, whether it fits, and the nearest that would.

Pure arithmetic on bytes and tokens: knows no files, no system and no tensors. Light. Invariants: a plan that fits needs
no more than is free in any memory and no more than its cap in all of them; a choice that is offered is a plan that
fits; where the system does not say what is free, only the cap refuses.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from editor_engine.errors import OutOfMemoryError

CPU = "cpu"
"""The place that is the memory of the machine; others are devices, such as `cuda:0`."""

WORKSPACE_BYTES = 160 << 20
"""Activations of a full pass of our kernels, the extension, Python and the libraries it loads: 90 MiB were seen with
smollm2 on one machine, 150 on another."""

CHECKED_TOKENS = 8192
"""A KV cache takes memory only as it fills. Where nobody asked for a context, so many tokens of it must have room."""

FEWEST_TOKENS = 1024
"""A context below this is no choice to offer: hardly a file with its instruction fits in."""


@dataclass(frozen=True)
class Need:
    """What one model takes of one memory."""

    name: str
    weights: int
    """Bytes."""
    cache_per_token: int
    """Bytes of KV cache."""
    workspace: int = WORKSPACE_BYTES
    """Bytes that are neither: activations, libraries."""
    place: str = CPU
    drafts: bool = False
    """It is the draft model."""
    most_tokens: int | None = None
    """Its cache never holds more; None: it grows with the context."""

    def held(self, tokens: int) -> int:
        """Tokens its cache holds of a context of so many."""
        return tokens if self.most_tokens is None else min(tokens, self.most_tokens)

    def cache(self, tokens: int) -> int:
        """Bytes of a cache for a context of so many tokens."""
        return self.cache_per_token * self.held(tokens)

    def bytes(self, tokens: int) -> int:
        """All of it."""
        return self.weights + self.cache(tokens) + self.workspace


@dataclass(frozen=True)
class MemoryPlan:
    """A load, before anything of it is done."""

    needs: tuple[Need, ...]
    """The model's first; one that is spread over two memories has two."""
    context: int
    """Tokens its caches may grow to."""
    asked: bool = False
    """Somebody asked for this context, so all of it must have room now."""
    copies: int = 0
    """Bytes that copies of caches of other conversations may grow to, in the machine's memory."""
    free: Mapping[str, int | None] = field(default_factory=dict)
    """Place -> bytes that can be taken there; None and absent: the system does not say."""
    cap: int | None = None
    """Most bytes in all places together, with everything the load may grow into; None: no cap."""

    @property
    def tokens(self) -> int:
        """Tokens of cache that must have room now."""
        return self.context if self.asked else min(self.context, CHECKED_TOKENS)

    @property
    def places(self) -> tuple[str, ...]:
        """Where something is taken, the model's first."""
        return tuple(dict.fromkeys(need.place for need in self.needs))

    def needed(self, place: str) -> int:
        """Bytes that must be free in a place."""
        return sum(need.bytes(self.tokens) for need in self.needs if need.place == place)

    @property
    def largest(self) -> int:
        """Bytes the load may grow to, everywhere: what the cap is held against."""
        return sum(need.bytes(self.context) for need in self.needs) + self.copies

    @property
    def over_cap(self) -> bool:
        """It may grow beyond its cap."""
        return self.cap is not None and self.largest > self.cap

    def is_short(self, place: str) -> bool:
        """There is known to be less than is needed there."""
        free = self.free.get(place)
        return free is not None and self.needed(place) > free

    @property
    def fits(self) -> bool:
        """As far as is known."""
        return not self.over_cap and not any(map(self.is_short, self.places))

    def with_context(self, tokens: int) -> "MemoryPlan":
        """The same with a context that is asked for."""
        return replace(self, context=tokens, asked=True)

    def longest_context(self) -> int:
        """The most tokens, at most its own, that fit when they are asked for; 0: not even one does."""
        fitting, beyond = 0, self.context + 1
        while beyond - fitting > 1:
            middle = (fitting + beyond) // 2
            if self.with_context(middle).fits:
                fitting = middle
            else:
                beyond = middle
        return fitting


@dataclass(frozen=True)
class Choice:
    """Another load in the place of one that does not fit."""

    words: str
    """What to choose and how to say it, as a clause without a verb."""
    plan: MemoryPlan


def nearest(plan: MemoryPlan, others: Iterable[Choice] = ()) -> Choice | None:
    """The first that fits of: fewer copies, a shorter context, no draft model, the others; None when nothing does.

    A draft model and the others are tried with the plan's context first, then with the longest that fits.
    """
    first = [_fewer_copies(plan)] if plan.copies and plan.over_cap else []
    alone = tuple(need for need in plan.needs if not need.drafts)
    own = [Choice("", plan)]
    if len(alone) < len(plan.needs):
        own.append(Choice("no draft model", replace(plan, needs=alone)))
    for choice in (*first, *own, *others):
        if choice.words and choice.plan.fits:
            return choice
        tokens = choice.plan.longest_context()
        if FEWEST_TOKENS <= tokens:
            shorter = f"a context of {tokens} tokens (--context-length {tokens})"
            words = f"{choice.words} with {shorter}" if choice.words else shorter
            return Choice(words, choice.plan.with_context(tokens))
    return None


def _fewer_copies(plan: MemoryPlan) -> Choice:
    """All that the cap leaves."""
    left = max(0, (plan.cap or 0) - plan.largest + plan.copies) >> 20
    return Choice(
        f"{left} MiB for the prompts of other conversations (--cache-mb {left})", replace(plan, copies=left << 20)
    )


def refuse_if_short(plan: MemoryPlan, others: Callable[[], Iterable[Choice]] = lambda: ()) -> None:
    """Raise OutOfMemoryError, with all numbers and the nearest choice, when a plan does not fit.

    `others` is asked only then.
    """
    if plan.fits:
        return
    if plan.over_cap:
        tokens, needed, parts = plan.context, plan.largest, plan.needs
        against = f"--max-memory allows {size_words(plan.cap or 0)}"
    else:
        place = next(filter(plan.is_short, plan.places))
        tokens, needed = plan.tokens, plan.needed(place)
        parts = tuple(need for need in plan.needs if need.place == place)
        where = "" if place == CPU else f" on {place}"
        against = f"{size_words(plan.free[place] or 0)} is available{where}"
    choice = nearest(plan, others())
    more = "allow it more" if plan.over_cap else "close other programs or take another machine"
    way_out = (
        f"no smaller choice that is known here fits; {more}"
        if choice is None
        else f"the nearest choice that fits is {choice.words}"
    )
    copies = plan.copies if plan.over_cap else 0
    raise OutOfMemoryError(
        f"{plan.needs[0].name} needs about {size_words(needed, up=True)} of memory "
        f"({parts_words(parts, tokens, copies)}) and {against}; {way_out}."
    )


def parts_words(needs: Sequence[Need], tokens: int, copies: int = 0) -> str:
    """What is needed, part by part."""
    parts: list[str] = []
    for need in needs:
        parts.append(f"{'draft model' if need.drafts else 'weights'} {size_words(need.weights, up=True)}")
        parts.append(f"its cache of {need.held(tokens)} tokens {size_words(need.cache(tokens), up=True)}")
    parts.append(f"workspace {size_words(sum(need.workspace for need in needs), up=True)}")
    if copies:
        parts.append(f"copies of caches {size_words(copies, up=True)}")
    return ", ".join(parts)


def size_words(size: int, *, up: bool = False) -> str:
    """A size for people, `6.22 GB` or `491 MB`, rounded to one side, so that what is too large for a room looks so."""
    unit, name, digits = (10**7, "GB", 2) if size >= 10**9 else (10**6, "MB", 0)
    rounded = -(-size // unit) if up else size // unit
    return f"{rounded / 10**digits:.{digits}f} {name}"
