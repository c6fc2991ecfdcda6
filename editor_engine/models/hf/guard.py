"""The margin guard: which choices of a pass must be made again in plain form, because rounding may decide them.

torch adds in an order that depends on how many rows a pass has, so the logits of a row differ in their last bits from
those of plain decoding. Where the best id leads by more than that noise, the choice is the same in any form; where it
does not, it is a near tie. Pure policy on lists: knows nothing of tensors or of models. Invariant: only choices that a
decode loop can take are looked at, those before which every token of the pass was the model's own choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

NOISE_SHARES = {"float32": 3e-5, "float16": 6e-3, "bfloat16": 3e-2, "int8": 6e-2}
"""By what rounds most coarsely (`Arithmetic.rounding`): how far a lead between two logits may move with the number of
rows, as a share of the row's greatest magnitude. Measured: at most 3e-6, 2.8e-3 and 1.8e-2 on the tiny checkpoints of
`tests/editor_engine/models/hf/test_noise.py`; on Qwen2.5-Coder 0.5B 5e-7 (float32), 9e-3 (bfloat16), 5e-3 (nf4, whose
kernel on this CPU multiplies in bfloat16) and 2.7e-2 (int8, where noise flips roundings of activations). It is no bound
that anybody has proved, so the badge stays "not guaranteed" until both ways were run."""


@dataclass(frozen=True)
class Guard:
    """How near ties are told and what is done about them."""

    share: float
    """A lead at or below this share of the row's greatest magnitude is a near tie; 0 leaves only exact ties."""
    replay: bool
    """True: the cache before the tie is put into plain form as well, so the choice is that of plain decoding. False:
    only the one token is run again, which leaves what rounding did to the cache; for types so coarse that ties are
    common and a replay would cost what drafting gained."""

    @classmethod
    def of(cls, rounding: str) -> "Guard":
        """The guard for arithmetic that rounds as `rounding`, a key of NOISE_SHARES."""
        return cls(NOISE_SHARES[rounding], replay=rounding == "float32")

    def near(self, lead: float, magnitude: float) -> bool:
        """True when the best logit leads the second by so little that rounding may have decided."""
        return lead <= self.share * magnitude


def next_near_tie(following: Sequence[int], choices: Sequence[int], near: Sequence[bool], start: int = 0) -> int | None:
    """Index of the first near tie from `start` on that a decode loop can take; None when there is none.

    `choices` and `near` have an entry for each row; `following` the token that the pass had after each row but the
    last. Behind the first choice that differs from the token after it, nothing is taken. The caller has settled what
    is before `start`.
    """
    for index in range(start, len(choices)):
        if near[index]:
            return index
        if index < len(following) and choices[index] != following[index]:
            return None
    return None


def decided(following: Sequence[int], choices: Sequence[int]) -> int:
    """How many of a pass's choices a decode loop can take: up to the first that differs from the token after it."""
    for index, (choice, token) in enumerate(zip(choices, following, strict=False)):
        if choice != token:
            return index + 1
    return len(choices)
