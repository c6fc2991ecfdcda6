"""A cap holds: what a process takes at its peak, with its whole context used and prompts copied, stays below it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from editor_engine.config import EngineConfig
from editor_engine.errors import OutOfMemoryError
from editor_engine.models.native.load import load_native
from editor_engine.models.needs import Machine, plan_load, refuse_what_does_not_fit

CONTEXT, COPIES = 768, 32 << 20
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a peak has the parent's in it")

FILL = """
import sys
from pathlib import Path
from editor_engine.config import EngineConfig
from editor_engine.engine import Engine
from editor_engine.machine import peak_rss_bytes
from editor_engine.requests import CompletionRequest, Message

path, context, copies, cap = Path(sys.argv[1]), *map(int, sys.argv[2:5])
engine = Engine.load(EngineConfig(path, threads=1, context_length=context, prefix_bytes=copies, max_memory=cap))

def ask(topic):
    lines = [f"{topic}_{number} = {number}" for number in range(1000)]
    low, high = 1, len(lines)
    while high - low > 1:  # as many lines as the context holds
        middle = (low + high) // 2
        request = CompletionRequest((Message("user", "\\n".join(lines[:middle])),), 0)
        low, high = (middle, high) if engine.count(request)[0] < context else (low, middle)
    request = CompletionRequest((Message("user", "\\n".join(lines[:low])),), 0)
    list(engine.complete(request))
    return engine.count(request)[0]

read = [ask(topic) for topic in ("alpha", "beta", "gamma")]
print(min(read), engine._prefixes.copied_bytes, peak_rss_bytes())
"""


def filled(path: Path, context: int, copies: int) -> tuple[int, int, int, int]:
    """(tokens read, bytes of copies, peak memory, cap) of a process that is capped at its plan."""
    cap = plan_load(EngineConfig(path, context_length=context, prefix_bytes=copies), Machine(None)).largest
    words = [sys.executable, "-c", FILL, str(path), str(context), str(copies), str(cap)]
    done = subprocess.run(words, check=True, timeout=300, capture_output=True, text=True)
    read, copied, peak = map(int, done.stdout.split())
    return read, copied, peak, cap


@pytest.mark.model
@ON_LINUX
def test_the_peak_of_a_real_model_stays_below_its_cap(smollm2_path: Path) -> None:
    load_native(EngineConfig(smollm2_path))  # packs once, both forms of the weights mapped; kept on disk from then on
    read, copied, peak, cap = filled(smollm2_path, CONTEXT, COPIES)
    assert read > CONTEXT * 0.95 and 0 < copied <= COPIES
    assert cap - (150 << 20) < peak <= cap  # a plan that is far too large would refuse what fits


@ON_LINUX
def test_what_torch_itself_takes_is_in_the_plan_of_a_checkpoint(folder_of: Callable[..., Path]) -> None:
    read, copied, peak, cap = filled(folder_of("Llama"), 300, 1 << 20)
    assert read > 250 and 0 < copied <= 1 << 20 and peak <= cap


@pytest.mark.model
def test_one_byte_less_is_refused(smollm2_path: Path) -> None:
    config = EngineConfig(smollm2_path, threads=1, context_length=CONTEXT, prefix_bytes=COPIES)
    cap = plan_load(config, Machine(None)).largest
    refuse_what_does_not_fit(EngineConfig(smollm2_path, context_length=CONTEXT, prefix_bytes=COPIES, max_memory=cap))
    with pytest.raises(OutOfMemoryError, match=r"\(--cache-mb 31\)"):
        refuse_what_does_not_fit(
            EngineConfig(smollm2_path, context_length=CONTEXT, prefix_bytes=COPIES, max_memory=cap - 1)
        )
