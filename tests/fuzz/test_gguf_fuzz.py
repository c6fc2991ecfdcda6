"""Builds the GGUF reader alone under the address and undefined-behaviour sanitizers and feeds it mutated files.

Some seconds in CI; with REDRAFT_SOAK=1 (`make soak`) fifty times as many files.
"""

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tests.support.soak import SOAK
from tests.support.tiny_gguf import GgufSource, tiny_source

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "editor_engine" / "kernels"
FILES = 3_000_000 if SOAK else 60_000


def every_kind_of_value() -> GgufSource:
    """A small file with each metadata type, nested arrays, and an alignment of its own."""
    source = GgufSource(alignment=64)
    text = struct.pack("<Q", 5) + b"hello"
    numbers = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
    for kind, code in numbers.items():
        source.metadata[f"scalar.{kind}"] = (kind, struct.pack("<" + code, 1))
        source.metadata[f"array.{kind}"] = (9, struct.pack("<IQ3" + code, kind, 3, 0, 1, 1))
    source.metadata["text"] = "hello"
    source.metadata["texts"] = ["a", "", "hello"]
    inner = struct.pack("<IQ", 8, 2) + text + text
    source.metadata["nested"] = (9, struct.pack("<IQ", 9, 2) + inner + struct.pack("<IQ", 0, 3) + b"\1\2\3")
    source.metadata["general.alignment"] = 64
    source.tensors["a.weight"] = ("Q4_0", (32, 2), bytes(36))
    source.tensors["b.weight"] = ("F32", (3, 1, 2, 1), bytes(24))
    return source


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the fuzz test needs a C++ compiler")
        pytest.skip("no C++ compiler to build the fuzz test with")
    target = tmp_path_factory.mktemp("fuzz") / "gguf_fuzz"
    flags = ["-std=c++20", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{KERNELS}"]
    sources = [str(ROOT / "tests" / "fuzz" / "gguf_fuzz.cpp"), str(KERNELS / "gguf_reader.cpp")]
    built = subprocess.run([compiler, *flags, *sources, "-o", str(target)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return target


def test_mutated_files_are_refused_or_consistent(fuzzer: Path, tmp_path: Path) -> None:
    small = every_kind_of_value().write(tmp_path / "small.gguf")
    model = tiny_source()
    model.metadata = {key: value for key, value in model.metadata.items() if not key.startswith("tokenizer.ggml.to")}
    model.metadata["tokenizer.ggml.merges"] = ["a b", "c d"]
    model.tensors = {name: tensor for name, tensor in model.tensors.items() if name.startswith("blk.0.attn")}
    run = subprocess.run(
        [str(fuzzer), "1", str(FILES), str(small), str(small), str(model.write(tmp_path / "model.gguf"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.match(r"(\d+) refused, (\d+) accepted", run.stdout)
    assert found is not None
    refused, accepted = int(found[1]), int(found[2])
    # Both ways through the reader were really walked.
    assert refused + accepted == FILES
    assert refused > FILES // 10
    assert accepted > FILES // 100


def test_unchanged_seeds_are_accepted(tmp_path: Path) -> None:
    from editor_engine.quant.gguf import GgufFile

    file = GgufFile(every_kind_of_value().write(tmp_path / "small.gguf"))
    assert file.metadata["nested"] == [["hello", "hello"], [1, 2, 3]]
    assert file.metadata["array.7"] == [False, True, True]
