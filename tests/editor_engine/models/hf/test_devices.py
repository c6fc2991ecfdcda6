"""Which device is taken, what is said of one that is not there, and how layers are split: without any of them here."""

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from editor_engine.config import HfOptions  # noqa: E402
from editor_engine.errors import EngineError, RequestError, UnsupportedModelError  # noqa: E402
from editor_engine.models.hf.devices import Cuda, Place, choose_place, moved, see_cuda, split  # noqa: E402

NONE = Cuda(0, "no NVIDIA driver or no graphics processor was found")
TWO = Cuda(2, "")


class FakeCuda:
    """As torch.cuda, with trouble."""

    def __init__(self, trouble: Callable[[], bool]) -> None:
        self.is_available = trouble

    def device_count(self) -> int:
        return 2


def warning(text: str) -> Callable[[], bool]:
    def trouble() -> bool:
        warnings.warn(text, UserWarning, stacklevel=1)
        return False

    return trouble


def missing_library() -> bool:
    raise OSError("libcudart.so.12: cannot open shared object file: No such file or directory")


OLD = (
    "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU "
    "driver by downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx"
)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (warning(OLD), r"the NVIDIA driver is too old .* \(it knows CUDA 11\.4\); update it"),
        (warning("CUDA initialization: Unexpected error from cudaGetDeviceCount().\nMore"), "Unexpected error"),
        (missing_library, "libcudart.so.12"),
        (lambda: False, "CPU only|no graphics processor"),
    ],
)
def test_what_is_wrong_with_cuda_is_one_sentence(trouble: Callable[[], bool], words: str) -> None:
    seen = see_cuda(FakeCuda(trouble))
    assert seen.count == 0 and "\n" not in seen.reason
    with pytest.raises(UnsupportedModelError, match=words):
        choose_place(HfOptions(device="cuda"), 4, seen, "")


def test_a_device_that_is_there_is_seen() -> None:
    assert see_cuda(FakeCuda(lambda: True)) == TWO


@pytest.mark.parametrize(
    ("options", "cuda", "place"),
    [
        (HfOptions(), NONE, Place("cpu", 4, 4)),
        (HfOptions(), TWO, Place("cuda:0", 4, 4)),
        (HfOptions(device="cpu"), TWO, Place("cpu", 4, 4)),
        (HfOptions(device="cuda"), TWO, Place("cuda:0", 4, 4)),
        (HfOptions(device="cuda:1"), TWO, Place("cuda:1", 4, 4)),
        (HfOptions(device="cuda:1", gpu_layers=3), TWO, Place("cuda:1", 3, 4)),
        (HfOptions(gpu_layers=4), TWO, Place("cuda:0", 4, 4)),
        (HfOptions(gpu_layers=0), NONE, Place("cpu", 4, 4)),
        (HfOptions(device="cuda", gpu_layers=0), TWO, Place("cpu", 4, 4)),
        (HfOptions(device="cpu", gpu_layers=0), NONE, Place("cpu", 4, 4)),
    ],
)
def test_where_a_model_goes(options: HfOptions, cuda: Cuda, place: Place) -> None:
    assert choose_place(options, 4, cuda, "") == (place, ())


def test_auto_leaves_a_device_that_is_too_small_and_says_so() -> None:
    assert choose_place(HfOptions(), 4, TWO, "Too small.") == (Place("cpu", 4, 4), ("Too small.",))
    assert choose_place(HfOptions(gpu_layers=2), 4, TWO, "Too small.") == (Place("cuda:0", 2, 4), ())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (HfOptions(device="cuda:2"), UnsupportedModelError, "there are 2"),
        (HfOptions(device="tpu"), RequestError, "cpu, cuda and cuda:N"),
        (HfOptions(device="cuda:x"), RequestError, "cuda:N"),
        (HfOptions(gpu_layers=5), RequestError, "the model has 4"),
        (HfOptions(gpu_layers=-1), RequestError, "the model has 4"),
        (HfOptions(device="cpu", gpu_layers=2), RequestError, "--gpu-layers 2 contradicts --device cpu"),
    ],
)
def test_what_cannot_be_had_is_refused(options: HfOptions, error: type[EngineError], words: str) -> None:
    with pytest.raises(error, match=words):
        choose_place(options, 4, TWO, "")


def test_layers_without_a_device_for_them_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="no graphics processor for 2 layers"):
        choose_place(HfOptions(gpu_layers=2), 4, NONE, "")


def test_a_split_place_says_what_is_where() -> None:
    assert Place("cuda:0", 20, 28).words == "cuda:0 (20 of 28 layers), cpu"
    assert Place("cuda:0", 28, 28).words == "cuda:0"
    assert Place("cpu", 28, 28).words == "cpu"


def test_tensors_are_moved_wherever_they_are() -> None:
    """`meta` is a device every machine has."""
    there, tensor, other = torch.device("meta"), torch.zeros(2), object()
    nested: Any = moved((tensor, {"a": (tensor, other)}, None, 3), there)
    assert nested[0].device == nested[1]["a"][0].device == there
    assert nested[1]["a"][1] is other and nested[2:] == (None, 3)


def test_each_layer_takes_its_input_to_where_it_is() -> None:
    layers = [torch.nn.Linear(2, 2) for _ in range(3)]
    split(layers, Place("meta", 2, 3))
    assert [layer.weight.device.type for layer in layers] == ["meta", "meta", "cpu"]
    assert layers[1](layers[0](torch.zeros(2))).device.type == "meta"
    assert layers[2](torch.zeros(2)).device.type == "cpu"
