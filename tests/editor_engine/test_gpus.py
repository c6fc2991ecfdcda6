"""Graphics processors as the driver's program names them: counted as CUDA counts, and silence where there are none."""

import sys
from pathlib import Path

import pytest

from editor_engine.gpus import Gpu, see_gpus

SAID = """0, GPU-aa11, NVIDIA H200, 143771, 143000
1, GPU-bb22, Some, Thing, 24564, [N/A]
nonsense
3, GPU-cc33, Third, 10, 5
"""
FIRST = Gpu(0, "NVIDIA H200", 143771 << 20, 143000 << 20)
SECOND = Gpu(1, "Some, Thing", 24564 << 20, None)
THIRD = Gpu(3, "Third", 10 << 20, 5 << 20)


def seen(text: str, **environment: str) -> tuple[Gpu, ...]:
    return see_gpus([sys.executable, "-c", f"print({text!r}, end='')"], environment)


def test_every_line_is_a_processor() -> None:
    assert seen(SAID) == (FIRST, SECOND, THIRD)
    assert FIRST.place == "cuda:0"


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("1,0", ["Some, Thing", "NVIDIA H200"]),
        ("GPU-cc", ["Third"]),
        ("GPU-bb22, 3", ["Some, Thing", "Third"]),
        ("", []),
        ("-1", []),
        ("0,7,1", ["NVIDIA H200"]),
        ("MIG-1", []),
    ],
)
def test_they_are_numbered_as_the_variable_says(visible: str, names: list[str]) -> None:
    found = seen(SAID, CUDA_VISIBLE_DEVICES=visible)
    assert [gpu.name for gpu in found] == names
    assert [gpu.number for gpu in found] == list(range(len(names)))


@pytest.mark.parametrize("program", ["", "raise SystemExit(9)", "import sys; sys.stdout.buffer.write(b'\\xff')"])
def test_a_driver_that_says_nothing_useful_is_none(program: str) -> None:
    assert see_gpus([sys.executable, "-c", program], {}) == ()


def test_without_the_program_there_are_none(tmp_path: Path) -> None:
    assert see_gpus([str(tmp_path / "nvidia-smi")], {}) == ()
