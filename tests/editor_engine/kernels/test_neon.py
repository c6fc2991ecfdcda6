"""The NEON kernels under emulation: built by a cross-compiler, compared bit for bit with the scalar ones.

The scalar results of the emulated processor are compared with this machine's too: a hash of what is written must not
depend on the processor. No speed is measured. Needs g++ for aarch64 and qemu (`make ci-deps`).
"""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from editor_engine.kernels import PACKABLE_TYPES

KERNELS = Path(__file__).parents[3] / "editor_engine" / "kernels"
PROGRAM = Path(__file__).with_name("variant_digest.cpp")
SHARED = [KERNELS / name for name in ("dispatch.cpp", "formats.cpp", "pack.cpp", "pool.cpp", "self_test.cpp")]
SCALAR = sorted((KERNELS / "scalar").glob("*.cpp"))
NEON = [KERNELS / "vector_ops.cpp", *sorted((KERNELS / "neon").glob("*.cpp"))]
FLAGS = ["-std=c++20", "-ffp-contract=off", "-fno-fast-math", "-Wall", "-Wextra", "-Werror", f"-I{KERNELS}"]
SEEDS = "100"
OPERATIONS = {
    *(f"linear {name}" for name in PACKABLE_TYPES),
    *("argmax", "attention", "exponential", "quantise", "rmsnorm", "rope_halves", "rope_pairs", "swiglu", "to_half"),
}


def tool(*names: str) -> str:
    for name in names:
        if (found := shutil.which(name)) is not None:
            return found
    sentence = f"{' or '.join(names)} is not installed; `make ci-deps` names the packages"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


def build(compiler: str, sources: list[Path], defines: list[str], folder: Path) -> Path:
    """The comparing program made of `sources`, linked statically; NEON optimised as in the product, the rest less."""

    def compile_one(source: Path) -> str:
        target = folder / f"{source.parent.name}_{source.stem}.o"
        level = {"neon": "-O3", "scalar": "-O1"}.get(source.parent.name, "-O0")
        words = [compiler, *FLAGS, level, *defines, "-c", str(source), "-o", str(target)]
        made = subprocess.run(words, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, [PROGRAM, *SHARED, *SCALAR, *sources]))
    program = folder / "variant_digest"
    words = [compiler, "-static", "-pthread", *objects, "-o", str(program)]
    linked = subprocess.run(words, capture_output=True, text=True, check=False)
    assert linked.returncode == 0, linked.stderr
    return program


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Words that run the program on an emulated aarch64 processor."""
    emulator = tool("qemu-aarch64", "qemu-aarch64-static")
    compiler = tool("aarch64-linux-gnu-g++")
    assert {path.stem for path in NEON} == {"attention", "linear", "rows", "vector_ops"}
    return [
        emulator,
        str(build(compiler, NEON, ["-DREDRAFT_NEON=1", "-DREDRAFT_ISA=neon"], tmp_path_factory.mktemp("aarch64"))),
    ]


def run(words: list[str]) -> tuple[int, str, dict[str, tuple[int, int, str]]]:
    """(exit status, first line, operation -> values compared, values that differ, digest of the scalar results)."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    first, *lines = done.stdout.splitlines()
    rows = [line.split("\t") for line in lines]
    return done.returncode, first, {name: (int(n), int(bad), digest) for name, n, bad, digest in rows}


def test_neon_gives_the_scalar_bits_and_this_machine_the_same(emulated: list[str], tmp_path: Path) -> None:
    status, first, found = run([*emulated, SEEDS])
    assert first == "variant\tneon\t0"  # it passed its self-test and is the one that would be used
    assert found.keys() == OPERATIONS
    assert {name: bad for name, (_, bad, _) in found.items() if bad} == {}
    assert status == 0
    assert all(compared >= 800 for compared, _, _ in found.values())

    here = build(tool(os.environ.get("CXX", "g++"), "c++"), [], [], tmp_path)
    assert run([str(here), SEEDS]) == (0, "variant\tscalar\t0", found)


def test_one_flipped_bit_is_found_in_every_operation(emulated: list[str]) -> None:
    status, _, found = run([*emulated, "3", "plant"])
    assert status == 1
    assert {name: bad for name, (_, bad, _) in found.items()} == dict.fromkeys(OPERATIONS, 1)
