"""What a load takes of one memory and what is there, as `redraft models` and the picker show it. Light.

Knows the plan of a load, not how it is made. Invariant: the numbers are those a load of the same plan is let through or
refused by.
"""

from dataclasses import dataclass

from editor_engine.memory import MemoryPlan, parts_words, size_words


@dataclass(frozen=True)
class Room:
    """What a load takes of one memory, and what is there."""

    device: str
    """`cpu`, or a graphics processor as `cuda:0`."""
    context: int
    """Tokens of cache that are counted: those asked for, else as many as a load must find room for."""
    weights: int
    """Bytes."""
    draft_weights: int
    cache: int
    """Of both models."""
    workspace: int
    needed: int
    """All of it."""
    free: int | None
    """None: the system does not say."""
    fits: bool | None
    """None: not known."""
    words: str
    """The parts, for people."""
    limit: int
    """Tokens the caches may grow to."""
    largest: int
    """Bytes the load may grow to then, in all memories."""
    cap: int | None
    """Most bytes it may take; None: what is free."""
    nearest: str | None = None
    """What would fit, where this does not; None: it fits, or nothing is known that does."""

    def sentence(self) -> str:
        """For people."""
        free = "unknown" if self.free is None else size_words(self.free)
        verdict = {True: "fits", False: "does not fit", None: "nobody knows whether it fits"}[self.fits]
        if self.cap is not None and self.largest > self.cap:
            verdict = (
                f"may grow to {size_words(self.largest, up=True)} with all its {self.limit} tokens, and --max-memory "
                f"allows {size_words(self.cap)}"
            )
        choice = "" if self.nearest is None else f"; the nearest choice that fits is {self.nearest}"
        return f"{size_words(self.needed, up=True)} ({self.words}), available {free}: {verdict}{choice}"


def rooms(plan: MemoryPlan, nearest_words: str | None = None) -> tuple[Room, ...]:
    """One for each memory that the plan takes something of."""
    found: list[Room] = []
    for place in plan.places:
        needs = tuple(need for need in plan.needs if need.place == place)
        free = plan.free.get(place)
        known = free is not None or plan.over_cap
        found.append(
            Room(
                device=place,
                context=plan.tokens,
                weights=sum(need.weights for need in needs if not need.drafts),
                draft_weights=sum(need.weights for need in needs if need.drafts),
                cache=sum(need.cache(plan.tokens) for need in needs),
                workspace=sum(need.workspace for need in needs),
                needed=plan.needed(place),
                free=free,
                fits=not (plan.over_cap or plan.is_short(place)) if known else None,
                words=parts_words(needs, plan.tokens),
                limit=plan.context,
                largest=plan.largest,
                cap=plan.cap,
                nearest=nearest_words,
            )
        )
    return tuple(found)
