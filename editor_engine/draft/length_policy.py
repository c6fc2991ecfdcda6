"""How many tokens to draft: the length with the best expected gain over what its rows cost.

Pure arithmetic on probabilities and costs; knows nothing of tokens. Invariant: the same numbers give the same length.
"""

from collections.abc import Sequence


def best_length(first: float, further: float, costs: Sequence[float], room: int) -> int:
    """Draft tokens, 0 to `room`, for a chance `first` of the first token and `further` of each one after a right one.

    A token won now is a token the confirmed draft would bring later at its best rate, so it is worth
    1 / rate = cost per token of the best pass that starts from a right token:

        rate = max over k of (1 + q + ... + q^k) / cost(1 + k)
        k    = argmax of (1 + p + pq + ... + pq^(k-1)) - rate * cost(1 + k)

    (Maximising tokens per cost of this pass alone drafts too boldly: without a draft the next token is learned as well,
    and the draft that follows it is the safer one. So does a probe as wide as the kernel's row tile at every new line
    after an edit, whatever its chance: where it pays, this formula drafts it.) `costs[rows]` is in plain steps, rows
    from 0.
    """
    most = min(room, len(costs) - 2)
    rate = 0.0
    tokens, weight = 0.0, 1.0
    for cost in costs[1:]:
        tokens += weight
        weight *= further
        rate = max(rate, tokens / cost)
    best, best_value = 0, 1.0 - rate * costs[1]
    tokens, weight = 1.0, first
    for k in range(1, most + 1):
        tokens += weight
        weight *= further
        value = tokens - rate * costs[1 + k]
        if value > best_value:
            best, best_value = k, value
    return best


def expected_tokens(first: float, further: float, drafted: int) -> float:
    """Tokens that a pass over `drafted` tokens emits on average, the model's own one among them."""
    tokens, weight = 1.0, first
    for _ in range(drafted):
        tokens += weight
        weight *= further
    return tokens
