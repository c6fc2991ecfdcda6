"""A cap holds: what a process takes at its peak, with its whole context used and prompts copied, stays below it."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from editor_engine.config import EngineConfig
from editor_engine.errors import OutOfMemoryError
from editor_engine.models.native.load import load_native
from editor_engine.models.needs import Machine, plan_load, refuse_what_does_not_fit
from editor_engine.quant.gguf import GgufFile

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

def resident():
    # Megabytes by what is mapped, the largest first: what to look at when a peak is too high.
    found, name = {}, ""
    for line in open("/proc/self/smaps"):
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            name = words[5] if len(words) > 5 else "anonymous"
        elif words[0] == "Rss:":
            found[name] = found.get(name, 0) + int(words[1]) / 1024
    return dict(sorted(found.items(), key=lambda item: -item[1])[:12])

read = [ask(topic) for topic in ("alpha", "beta", "gamma")]
print(min(read), engine._prefixes.copied_bytes, peak_rss_bytes())
print(resident())
"""


def filled(path: Path, context: int, copies: int) -> tuple[int, int, int, int]:
    """(tokens read, bytes of copies, peak memory, cap) of a process that is capped at its plan; prints what it had."""
    cap = plan_load(EngineConfig(path, context_length=context, prefix_bytes=copies), Machine(None)).largest
    words = [sys.executable, "-c", FILL, str(path), str(context), str(copies), str(cap)]
    done = subprocess.run(words, check=True, timeout=300, capture_output=True, text=True)
    figures, had = done.stdout.splitlines()
    read, copied, peak = map(int, figures.split())
    print(f"at its end, MB: {had}")
    return read, copied, peak, cap


@pytest.mark.model
@ON_LINUX
@pytest.mark.parametrize("cache", ["empty", "filled", "refused", "hashed anew"])
def test_the_peak_of_a_real_model_stays_below_its_cap(
    smollm2_path: Path, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the file that is hashed or packed nor the packed weights that cannot be kept come on top of the plan."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if cache == "refused":
        (tmp_path / "cache").touch()
    elif cache != "empty":
        load_native(EngineConfig(smollm2_path))
    if cache == "hashed anew":
        for record in (tmp_path / "cache").rglob("hashes/*.json"):
            record.unlink()
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


@pytest.fixture
def own_smollm2(smollm2_path: Path, tmp_path: Path) -> Path:
    """A file that no other test has mapped in this process."""
    return Path(shutil.copyfile(smollm2_path, tmp_path / "own.gguf"))


@pytest.mark.model
@ON_LINUX
def test_what_was_read_of_a_model_file_is_given_back(own_smollm2: Path) -> None:
    file = GgufFile(own_smollm2)
    whole = np.concatenate([stretch.copy() for stretch in file.stretches()])
    assert whole.tobytes() == own_smollm2.read_bytes() and resident_bytes(own_smollm2) == 0
    tensor = file.raw("token_embd.weight")
    before = tensor.sum(dtype=np.uint64)
    assert resident_bytes(own_smollm2) >= tensor.nbytes - 8192
    file.release()
    assert resident_bytes(own_smollm2) == 0 and tensor.sum(dtype=np.uint64) == before


@pytest.mark.model
@ON_LINUX
def test_a_long_conversation_keeps_little_of_the_embedding_in_memory(own_smollm2: Path) -> None:
    model = load_native(EngineConfig(own_smollm2, threads=1)).model
    most = 0
    for first in range(0, 40_000, 800):  # far apart: each brings its own page
        model.truncate(0)
        model.forward(range(first, first + 800, 13), head_rows=1)
        most = max(most, resident_bytes(own_smollm2))
    assert 0 < most < 20 << 20  # 27 MB have all its rows


def resident_bytes(path: Path) -> int:
    """Of the maps of a file in this process."""
    counted, ours = 0, False
    for line in Path("/proc/self/smaps").read_text("utf-8").splitlines():
        if not line.split(maxsplit=1)[0].endswith(":"):
            ours = line.endswith(f" {path.resolve()}")
        elif ours and line.startswith("Rss:"):
            counted += int(line.split()[1]) * 1024
    return counted
