"""The catalogue's facts hang together, and the choice of a default model follows its table."""

import subprocess
import sys

import pytest

from editor_engine.errors import ModelMissingError
from editor_engine.store.catalogue import catalogue, default_model, find, gigabytes, require

SMALL, LARGE = "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"
GB = 10**9


def test_the_parts_of_a_model_make_up_its_size() -> None:
    carried = [model for model in catalogue() if model.index]
    assert [(model.id, len(model.index.parts)) for model in carried if model.index] == [
        (SMALL, 6),
        (LARGE, 22),
        ("smollm2-135m", 1),
    ]
    for model in carried:
        assert model.index and sum(part.bytes for part in model.index.parts) == model.bytes


def test_every_hash_and_revision_has_its_length_and_no_two_models_share_one() -> None:
    for model in catalogue():
        assert len(bytes.fromhex(model.sha256)) == 32
        assert (model.repository is None) == (model.revision is None)
        assert model.revision is None or len(bytes.fromhex(model.revision)) == 20
        for part in model.index.parts if model.index else ():
            assert len(bytes.fromhex(part.sha256)) == len(bytes.fromhex(part.wheel_sha256)) == 32
    for facts in ("id", "file", "sha256"):
        assert len({getattr(model, facts) for model in catalogue()}) == len(catalogue())


def test_only_the_3b_model_asks_for_agreement() -> None:
    assert [model.id for model in catalogue() if model.licence_notice] == ["qwen2.5-coder-3b"]


@pytest.mark.parametrize(
    ("memory", "processors", "installed", "chosen"),
    [
        (6 * GB, 2, [], LARGE),
        (6 * GB - 1, 2, [], SMALL),
        (6 * GB, 1, [], SMALL),
        (None, 8, [], SMALL),
        (24 * GB, 8, [SMALL], SMALL),  # an installed one beats a download
        (24 * GB, 8, [SMALL, LARGE], LARGE),
        (3 * GB, 8, [SMALL, LARGE], SMALL),
        (3 * GB, 8, [LARGE], LARGE),  # not comfortable, but it fits and is here
        (1 * GB, 8, [LARGE], SMALL),
        (24 * GB, 8, ["smollm2-135m"], LARGE),
    ],
)
def test_the_default_for_a_machine(memory: int | None, processors: int, installed: list[str], chosen: str) -> None:
    assert default_model(memory, processors, installed).id == chosen


def test_the_reason_has_the_machine_in_it() -> None:
    assert "4.0 GB of memory available, 1 processor)" in default_model(4 * GB, 1, []).reason
    assert "unknown" in default_model(None, 2, []).reason


def test_an_unknown_id_lists_the_known_ones() -> None:
    assert find("nonsense") is None
    with pytest.raises(ModelMissingError, match=f"'nonsense'; known: {SMALL}, {LARGE}"):
        require("nonsense")


def test_sizes_are_decimal() -> None:
    assert [gigabytes(size) for size in (98_362_432, 999_499_999, 999_500_000, 1_117_320_768)] == [
        "98 MB",
        "999 MB",
        "1.0 GB",
        "1.1 GB",
    ]


def test_importing_the_store_loads_nothing_heavy() -> None:
    code = (
        "import sys, app.models_command, editor_engine.store.catalogue, editor_engine.store.installed;"
        "print([m for m in ('numpy', 'huggingface_hub', 'rich', 'torch') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
