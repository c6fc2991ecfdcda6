"""Every kernel under the address and undefined-behaviour sanitizers: *_checks.cpp, built with all their sources.

The sources and flags of the variants are read from CMakeLists.txt, so that a new file cannot be forgotten here.
"""

import os
import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from editor_engine import kernels

ROOT = Path(__file__).parents[3]
KERNELS = ROOT / "editor_engine" / "kernels"
CHECKS = sorted(Path(__file__).parent.glob("*_checks.cpp"))
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLAGS = ["-std=c++20", "-g1", "-ffp-contract=off", "-fno-fast-math", f"-I{KERNELS}", *SANITIZERS]
X86 = platform.machine().lower() in ("x86_64", "amd64")


def compile_jobs() -> list[tuple[Path, list[str]]]:
    """Each source with the flags it needs beyond FLAGS, a vector source once per variant; the checks stay at -O0."""
    cmake = (KERNELS / "CMakeLists.txt").read_text(encoding="utf-8")
    listed = re.search(r"nanobind_add_module\(_native[^\n]*\n(.*?)\n\)", cmake, re.DOTALL)
    assert listed is not None
    names = [name for name in listed[1].split() if not name.startswith("bind")]
    assert {"linear.cpp", "model.cpp", "self_test.cpp"} <= {Path(name).name for name in names}
    define = ["-DREDRAFT_X86=1"] if X86 else []
    jobs = [*((check, define) for check in CHECKS), *((KERNELS / name, [*define, "-O1"]) for name in names)]
    if X86:
        shared = re.search(r"set\(avx2_flags ([^)]*)\)", cmake)
        variants = re.findall(r"add_variant\((\w+) (\$\{avx2_flags\}[^)]*)\)", cmake)
        assert shared is not None
        assert len(variants) >= 3
        for name, words in variants:
            flags = [*words.replace("${avx2_flags}", shared[1]).split(), f"-DREDRAFT_ISA={name}", "-O1"]
            jobs += [
                (source, flags) for source in [KERNELS / "vector_ops.cpp", *sorted((KERNELS / "x86").glob("*.cpp"))]
            ]
    return jobs


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("c++")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the sanitizer test needs a C++ compiler")
        pytest.skip("no C++ compiler to build the kernels under sanitizers with")
    folder = tmp_path_factory.mktemp("sanitized")
    jobs = compile_jobs()

    def build(number: int) -> str:
        source, flags = jobs[number]
        target = folder / f"{number}.o"
        made = subprocess.run(
            [compiler, *FLAGS, *flags, "-c", str(source), "-o", str(target)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        return str(target)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(build, range(len(jobs))))
    program = folder / "kernel_checks"
    linked = subprocess.run(
        [compiler, *SANITIZERS, *objects, "-pthread", "-o", str(program)], capture_output=True, text=True, check=False
    )
    assert linked.returncode == 0, linked.stderr
    return program


def test_kernels_touch_nothing_that_is_not_theirs(checks: Path) -> None:
    run = subprocess.run([str(checks)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout == f"variants {','.join(kernels.variants())}, {len(kernels.PACKABLE_TYPES)} types\n"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("short-weights", "ERROR: AddressSanitizer"),
        ("short-keys", "ERROR: AddressSanitizer"),
        ("shift", "shift exponent 40 is too large"),
    ],
)
def test_a_planted_fault_is_found(checks: Path, fault: str, words: str) -> None:
    """Without this, a build whose sanitizers see nothing would pass for a clean one."""
    run = subprocess.run([str(checks), fault], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert words in run.stderr
