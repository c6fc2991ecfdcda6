"""Fixtures every test may use: real weights by marker. Knows nothing of what is tested."""

import os
from pathlib import Path

import platformdirs
import pytest

# Resolved at import, before anything seals the user's folders off.
_MODELS = Path(os.environ.get("REDRAFT_TEST_MODELS") or Path(platformdirs.user_data_dir("redraft")) / "models")


def _weights(name: str) -> Path:
    path = _MODELS / name
    if not path.is_file():
        sentence = f"{name} is not in {_MODELS}; `redraft models pull` fetches it"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return path


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2 135M (llama family, tied head)."""
    return _weights("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def qwen05_path() -> Path:
    """Qwen2.5 Coder 0.5B."""
    return _weights("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")


@pytest.fixture(scope="session")
def qwen15_path() -> Path:
    """Qwen2.5 Coder 1.5B."""
    return _weights("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")
