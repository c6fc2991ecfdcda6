"""Guessed token counts, held against two real tokenisers."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clients.token_estimate import estimate_tokens, least_tokens
from editor_engine.quant.gguf import GgufFile
from editor_engine.text.tokenizer import load_tokenizer

ROOT = Path(__file__).parents[3]
FILES = sorted([*ROOT.glob("app/editing/*.py"), *ROOT.glob("editor_engine/kernels/scalar/*.cpp"), ROOT / "README.md"])


@settings(derandomize=True, deadline=None)
@given(st.text())
def test_the_least_is_never_more_than_the_estimate(text: str) -> None:
    assert 0 <= least_tokens(text) <= estimate_tokens(text)


def test_more_text_is_never_fewer_tokens() -> None:
    text = FILES[0].read_text(encoding="utf-8")
    counts = [estimate_tokens(text[:end]) for end in range(0, len(text), 97)]
    assert counts == sorted(counts) and counts[0] == 0


@pytest.mark.model
@pytest.mark.parametrize("weights", ["smollm2_path", "qwen05_path"])
def test_real_tokenisers_lie_between(weights: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(GgufFile(request.getfixturevalue(weights)).metadata, tmp_path)
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        real = len(tokenizer.encode_continuation([], "", text))
        assert least_tokens(text) < real, path
        assert 0.85 * real < estimate_tokens(text) < 1.6 * real, path
