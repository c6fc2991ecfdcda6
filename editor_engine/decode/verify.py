"""Which drafted tokens stand: the ones the model would have chosen itself, up to the first that differs."""

from collections.abc import Collection, Sequence


def usable_draft(tokens: Sequence[int], room: int, vocab_size: int, stop_ids: Collection[int]) -> tuple[int, ...]:
    """The part of a draft worth verifying: at most `room` tokens, up to the first unknown id or stop token.

    Drafters are not trusted: an id the model does not have would be an out-of-range read, and nothing after a stop
    token can be emitted.
    """
    kept: list[int] = []
    for token in tokens[: max(room, 0)]:
        if not 0 <= token < vocab_size:
            break
        kept.append(token)
        if token in stop_ids:
            break
    return tuple(kept)


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """How many leading tokens are equal; of a draft and the model's own choices, the ones that stand."""
    count = 0
    for a, b in zip(left, right, strict=False):
        if a != b:
            break
        count += 1
    return count
