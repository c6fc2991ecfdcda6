"""Whether a draft model pays, and how far it should draft: chances learned from its drafts, and seconds measured.

Pure arithmetic on chances and seconds that are handed in; knows nothing of models, tokens or clocks. One of these lives
as long as the pair is loaded, and is kept from one run to the next. Invariants: it decides speed and nothing else;
where the gain is not positive, a trial begins only when one hundredth of the time of the target's passes has paid it.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from editor_engine.draft.acceptance import Acceptance

CONFIDENCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)
"""Borders of the buckets of a draft model's own probability."""

TRIAL = 8
"""Attempts in a row of a trial: reading up to the place is paid once for all of them."""

_USUAL = 0.7
"""Chance of a drafted token before anything is learned: pairs of one family agree so often on code."""
_KEPT = 64
"""Attempts that count for the gain, about; later ones weigh more."""
_PRIOR = 12.0
"""Attempts the gain expected from costs alone counts as much as."""
_TRIAL_SHARE = 0.01
_PLAIN_KEPT = 7
"""Plain steps whose median the gain is measured against."""
_PLAIN_EVERY = 24
"""Attempts after which a plain step is taken: a gain over steps that nobody timed for long would be made up."""
_LENGTHS = {"reply": 100.0, "run": 8.0}
"""Tokens of a whole reply, and in a row, that the rest of the chain leaves over, before any were counted."""
_LATEST = 1 / 6
"""How far one reply or run moves them."""
_MOST = 1e15
"""No count or time of ours is larger; beyond, sums and products leave the floats."""


@dataclass(frozen=True)
class Place:
    """What things cost at one place of a reply."""

    plain_s: float
    """Seconds of a plain step of the target."""
    draft_s: float
    """Seconds of one pass of the draft model over one token."""
    costs: Sequence[float]
    """Of a target pass by its rows, in plain steps."""


class PairGain:
    """What was learned of one draft model for one target. A kind of reply is any text; each has a gain of its own."""

    def __init__(self) -> None:
        low = (0.0, *CONFIDENCES)
        high = (*CONFIDENCES, 1.0)
        priors: dict[Hashable, float] = {
            f"{place}.{bucket}": (low[bucket] + high[bucket]) / 2 for place in (0, 1) for bucket in range(len(low))
        }
        self._chances = Acceptance(priors, default=_USUAL, weight=8.0, window=100.0)
        # kind -> attempts, their seconds, those of plain steps; and the last two with steps it was not asked for
        self._measured: dict[str, tuple[float, float, float]] = {}
        self._all: dict[str, tuple[float, float]] = {}
        self._lengths: dict[str, float] = {}
        self._budget_s = 0.0
        self._plain: deque[float] = deque(maxlen=_PLAIN_KEPT)
        self._since_plain = 0

    @property
    def plain_s(self) -> float | None:
        """Seconds of a plain step of the target lately; None before the first one."""
        return median(self._plain) if self._plain else None

    @property
    def plain_is_due(self) -> bool:
        """It is time to take a plain step and time it."""
        return self._since_plain >= _PLAIN_EVERY

    def chance(self, position: int, confidence: float) -> float:
        """Chance that the draft's token at `position` (from 0) is the target's, when those before it are."""
        return self._chances.chance(_key(position, confidence))

    def learn(self, position: int, confidence: float, right: bool, streak: int) -> None:
        """A drafted token was verified; `streak` as in `worth_asking`."""
        self._chances.learn(_key(position, confidence), right)
        self._chances.learn(_ahead(position, streak), right)

    def expected(self, place: Place) -> float:
        """Tokens per second over plain decoding that the costs promise at the usual chance."""
        draft = place.draft_s / place.plain_s
        best, tokens = 0.0, 1.0
        for rows in range(2, len(place.costs)):
            tokens += _USUAL ** (rows - 1)
            best = max(best, tokens / ((rows - 1) * draft + place.costs[rows]))
        return best

    def measured(self, kind: str) -> float | None:
        """Tokens per second of attempts over plain decoding, lately; None before the first one."""
        _, seconds, plain_s = self._measured.get(kind, (0.0, 0.0, 0.0))
        return plain_s / seconds if seconds > 0.0 else None

    def gain(self, kind: str, place: Place) -> float:
        """The measured gain, or what is expected as long as little was measured."""
        attempts, seconds, plain_s = self._measured.get(kind, (0.0, 0.0, 0.0))
        usual_s = seconds / attempts if seconds > 0.0 else place.draft_s + place.plain_s * place.costs[2]
        return (plain_s + _PRIOR * usual_s * self.expected(place)) / (seconds + _PRIOR * usual_s)

    def worth_asking(self, kind: str, place: Place, streak: int, room: int) -> bool:
        """A draft of some length up to `room` is expected to bring more than it costs.

        `streak`: attempts right before this one of which every token was accepted.
        """
        rate = self._rate(kind)
        draft = place.draft_s / place.plain_s
        tokens, weight = 0.0, self._chances.chance(_ahead(0, streak))
        further = self._chances.chance(_ahead(1, streak))
        for rows in range(2, min(room, len(place.costs) - 2) + 2):
            tokens += weight
            weight *= further
            if tokens > rate * ((rows - 1) * draft + place.costs[rows] - place.costs[1]):
                return True
        return False

    def worth_a_row(self, kind: str, place: Place, chance: float, drafted: int) -> bool:
        """A further token that stands with `chance` is worth verifying after `drafted` others."""
        rate = self._rate(kind)
        return chance > rate * (place.costs[drafted + 2] - place.costs[drafted + 1])

    def worth_a_pass(self, kind: str, place: Place, chance: float, drafted: int) -> bool:
        """To draft one more token is worth a pass of the draft model and a row, when `drafted` stand with `chance`."""
        rate = self._rate(kind)
        cost = place.draft_s / place.plain_s + place.costs[drafted + 2] - place.costs[drafted + 1]
        return chance * self._chances.chance(_ahead(1, 0)) > rate * cost

    def worth_reading(self, kind: str, place: Place, reading_s: float, tokens: float) -> bool:
        """To bring the draft model into step, which takes `reading_s`, for so many tokens to come."""
        gain = self.gain(kind, place)
        return gain > 1.0 and tokens * place.plain_s * (1.0 - 1.0 / gain) >= reading_s

    def left_over(self, kind: str, stretch: str) -> float:
        """Tokens that are usually left to the draft model in a `stretch`, "reply" or "run". As in a run of luck, how
        many came already says nothing of how many are to come."""
        return self._lengths.get(f"{kind} {stretch}", _LENGTHS[stretch])

    def counted(self, kind: str, stretch: str, tokens: int) -> None:
        """A reply or a run is over that left so many."""
        had = self.left_over(kind, stretch)
        self._lengths[f"{kind} {stretch}"] = had + _LATEST * (tokens - had)

    def may_try(self, kind: str, place: Place, reading_s: float) -> bool:
        """There is time set aside for a trial that is expected to lose."""
        return reading_s + TRIAL * _loss_s(place) <= self._budget_s

    def may_probe(self, place: Place) -> bool:
        """There is time set aside for one attempt that is expected to lose: chances learned here may be out of date."""
        return _loss_s(place) <= self._budget_s

    def passed(self, rows: int, seconds: float) -> None:
        """A pass of the target over so many rows; a share of its time is set aside for trials."""
        self._budget_s += _TRIAL_SHARE * seconds
        if rows == 1 and seconds > 0.0:
            self._plain.append(seconds)
            self._since_plain = 0

    def spent(self, seconds: float) -> None:
        """A trial's reading took so long."""
        self._budget_s = max(0.0, self._budget_s - seconds)

    def stepped(self, kind: str, seconds: float) -> None:
        """A plain step was taken where the rest of the chain had no draft, and the draft model was not asked."""
        self._add(kind, seconds, seconds)

    def attempted(self, kind: str, seconds: float, plain_s: float) -> None:
        """One attempt, its verification included, took `seconds`; what it emitted takes `plain_s` in plain steps."""
        self._since_plain += 1
        self._add(kind, seconds, plain_s)
        keep = 1.0 - 1.0 / _KEPT
        attempts, all_s, all_plain_s = self._measured.get(kind, (0.0, 0.0, 0.0))
        self._measured[kind] = attempts * keep + 1.0, all_s * keep + seconds, all_plain_s * keep + plain_s
        self._budget_s = max(0.0, self._budget_s - max(0.0, seconds - plain_s))

    def _add(self, kind: str, seconds: float, plain_s: float) -> None:
        keep = 1.0 - 1.0 / _KEPT
        all_s, all_plain_s = self._all.get(kind, (0.0, 0.0))
        self._all[kind] = all_s * keep + seconds, all_plain_s * keep + plain_s

    def _rate(self, kind: str) -> float:
        """Tokens that come in the time of a plain step where the rest of the chain has no draft: what one is worth.

        Not the gain of attempts alone: asked only where it is sure, it would seem too good to be asked anywhere else.
        """
        seconds, plain_s = self._all.get(kind, (0.0, 0.0))
        return max(1.0, plain_s / seconds) if seconds > 0.0 else 1.0

    def snapshot(self) -> dict[str, dict[str, list[float]]]:
        """What was learned, for JSON."""
        return {
            "chances": {str(kind): list(counts) for kind, counts in self._chances.counts.items()},
            "measured": {kind: list(found) for kind, found in self._measured.items()},
            "lengths": {stretch: [length] for stretch, length in self._lengths.items()},
        }

    def restore(self, snapshot: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        """Take up what `snapshot` kept. Raises ValueError, and changes nothing, when it is not such a snapshot."""
        chances = {kind: _numbers(found, 2) for kind, found in snapshot["chances"].items()}
        measured = {kind: _numbers(found, 3) for kind, found in snapshot["measured"].items()}
        lengths = {stretch: _numbers(found, 1)[0] for stretch, found in snapshot["lengths"].items()}
        if any(right > seen for right, seen in chances.values()):
            raise ValueError("more was right than was seen")
        self._chances.counts = {kind: (right, seen) for kind, (right, seen) in chances.items()}
        self._measured = {kind: (attempts, seconds, plain) for kind, (attempts, seconds, plain) in measured.items()}
        self._lengths = lengths


def _loss_s(place: Place) -> float:
    """What an attempt of one token costs that comes to nothing."""
    return place.draft_s + place.plain_s * (place.costs[2] - place.costs[1])


def _key(position: int, confidence: float) -> str:
    return f"{min(position, 1)}.{bisect_right(CONFIDENCES, confidence)}"


def _ahead(position: int, streak: int) -> str:
    """Of a token whose confidence is not known yet."""
    return "further" if position else f"first.{min(streak, 3)}"


def _numbers(found: Sequence[float], count: int) -> tuple[float, ...]:
    numbers = tuple(float(number) for number in found)
    if len(numbers) != count or not all(0.0 <= number <= _MOST for number in numbers):
        raise ValueError("a count or a time is a number from 0")
    return numbers
