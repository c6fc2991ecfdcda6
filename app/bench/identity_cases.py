"""The built-in cases of `redraft verify`: small edits of the benchmark's own file, free text, and drawn text.

Knows no engine. Invariant: the cases never depend on the machine, so that token hashes can be compared.
"""

from app.bench.turns import OWN_FILE
from app.editing.language import detect_language
from app.editing.prompt import build_prompt
from editor_engine.bench.identity import IdentityCase
from editor_engine.requests import CompletionRequest, Message
from prompts import bench_text

_TEMPERATURE = 0.8
_SEED = 7


def identity_cases(tokens: int) -> list[IdentityCase]:
    """Every case, with at most `tokens` output tokens each (at least 1)."""
    lines = bench_text("parcels").splitlines()
    language = detect_language(OWN_FILE, lines[0])
    cases = []
    for line in bench_text("verify").splitlines():
        name, part, instruction = line.split(": ", 2)
        if part == "-":
            request = CompletionRequest((Message("user", instruction),), tokens)
        else:
            first, last = map(int, part.split("-"))
            request = build_prompt(lines[first - 1 : last], instruction, language).request(tokens)
        cases.append(IdentityCase(name, request))
    messages = cases[-1].request.messages
    drawn = CompletionRequest(messages, tokens, temperature=_TEMPERATURE, seed=_SEED)
    return [*cases, IdentityCase(f"{cases[-1].name}, drawn", drawn)]
