"""What a watch is asked to do, in one record. Knows nothing of how."""

from dataclasses import dataclass, field

from app.watch.breaker import Breaker
from app.watch.job import EditLimits
from app.watch.rules import StandingRules
from app.watch.saves import MOST_QUEUED, SETTLE_S


@dataclass(frozen=True)
class WatchOptions:
    """What to watch, and what to do about a save."""

    paths: tuple[str, ...]
    """Files and folders, at least one."""
    standing: StandingRules = field(default_factory=StandingRules)
    apply: bool = False
    """Write an edit that raised no warning, instead of proposing it."""
    once: bool = False
    """Edit every file that has a trigger, and, with a standing instruction, every file that was named; then end."""
    poll: bool = False
    """The file system gives no events."""
    limits: EditLimits = field(default_factory=EditLimits)
    settle_s: float = SETTLE_S
    most_queued: int = MOST_QUEUED
    breaker: Breaker | None = None
    """None: 3 runs in 30 s."""
