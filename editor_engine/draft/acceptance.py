"""How often each kind of guess came true lately: decaying counts that start from a prior.

Knows nothing of tokens; a kind is any hashable key. Invariant: memory is bounded by the number of kinds.
"""

from collections.abc import Hashable, Mapping


class Acceptance:
    """Running chance per kind of guess, learned from guesses that were made and from those only thought of."""

    def __init__(self, priors: Mapping[Hashable, float], default: float, weight: float, window: float) -> None:
        """`priors`: chance before any sighting, else `default`; worth `weight` sightings; about `window` are kept."""
        self._priors = priors
        self._default = default
        self._weight = weight
        self._keep = 1.0 - 1.0 / window
        self.counts: dict[Hashable, tuple[float, float]] = {}
        """Kind to (right, seen), both decayed."""

    def chance(self, kind: Hashable) -> float:
        """Chance that a guess of this kind is right, 0 to 1."""
        right, seen = self.counts.get(kind, (0.0, 0.0))
        return (right + self._weight * self._priors.get(kind, self._default)) / (seen + self._weight)

    def learn(self, kind: Hashable, right: bool) -> None:
        """Count one guess of this kind."""
        good, seen = self.counts.get(kind, (0.0, 0.0))
        self.counts[kind] = (good * self._keep + right, seen * self._keep + 1.0)
