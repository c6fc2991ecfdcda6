"""vLLM's counters of speculative decoding, and what of them belongs to one request.

They count for the whole server. Knows Prometheus' text format as far as needed. Invariant: counts are given for a
request only where the server produced nothing but that request's tokens in between.
"""

import re
from dataclasses import dataclass
from math import isfinite

_SAMPLE = re.compile(r"(?m)^(vllm:\w+?)(?:_total)?(?:\{[^}\n]*\})? +([0-9.eE+]+)\s*$")
_DRAFTED = "vllm:spec_decode_num_draft_tokens"
_ACCEPTED = "vllm:spec_decode_num_accepted_tokens"
_OUTPUT = "vllm:generation_tokens"


@dataclass(frozen=True)
class SpecCounters:
    """The counters at one moment, in tokens, over all of the server's engines."""

    drafted: int
    accepted: int
    output: int

    def since(self, before: "SpecCounters", output: int | None) -> tuple[int, int] | None:
        """(drafted, accepted) of a request with so many output tokens; None where others were served meanwhile."""
        if output is None or self.output - before.output != output:
            return None
        return self.drafted - before.drafted, self.accepted - before.accepted


def read_counters(text: object) -> SpecCounters | None:
    """The counters in a metrics page; None where it has none (the server does not draft)."""
    if not isinstance(text, str):
        return None
    sums: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        try:
            sums[name] = sums.get(name, 0.0) + float(value)
        except ValueError:
            return None
    if not {_DRAFTED, _ACCEPTED, _OUTPUT} <= sums.keys() or not all(map(isfinite, sums.values())):
        return None
    return SpecCounters(int(sums[_DRAFTED]), int(sums[_ACCEPTED]), int(sums[_OUTPUT]))
