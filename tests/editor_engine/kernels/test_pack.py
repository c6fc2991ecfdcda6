"""Packing loses nothing, costs no bytes, and refuses what it must."""

import gguf
import numpy as np
import pytest

from editor_engine import kernels
from editor_engine.errors import ModelFileError, UnsupportedModelError
from editor_engine.kernels import PACKABLE_TYPES, RawTensor
from editor_engine.kernels.reference_model import read_matrix
from tests.support.kernel_cases import random_matrix

GGML = {name: getattr(gguf.GGMLQuantizationType, name) for name in (*PACKABLE_TYPES, "F16", "F32")}


@pytest.mark.parametrize("kind", PACKABLE_TYPES)
@pytest.mark.parametrize("n", [1, 8, 21])
def test_unpacked_values_are_those_of_an_independent_reader(kind: str, n: int) -> None:
    raw = random_matrix(kind, n, 512, seed=n)
    expected = gguf.quants.dequantize(raw.data.reshape(n, -1), GGML[kind])
    assert np.array_equal(kernels.unpack(kernels.pack(raw)), expected)
    assert np.array_equal(kernels.dequantise(raw), expected)
    assert np.array_equal(read_matrix(raw).values(), expected)


@pytest.mark.parametrize("kind", ["F16", "F32"])
def test_float_embeddings_are_read_as_stored(kind: str) -> None:
    raw = random_matrix(kind, 3, 40)
    assert np.array_equal(kernels.dequantise(raw), gguf.quants.dequantize(raw.data, GGML[kind]).reshape(3, 40))


@pytest.mark.parametrize("kind", PACKABLE_TYPES)
def test_packed_bytes_are_the_files_bytes_and_do_not_depend_on_threads(kind: str) -> None:
    raw = random_matrix(kind, 40, 256)
    packed = kernels.pack(raw)
    assert packed.data.nbytes == raw.data.nbytes
    assert np.array_equal(packed.data, kernels.pack(raw, threads=2).data)


@pytest.mark.parametrize("kind", PACKABLE_TYPES)
@pytest.mark.parametrize("half", [0x7C00, 0xFC00, 0x7E01])
def test_a_scale_that_is_no_number_is_refused(kind: str, half: int) -> None:
    raw = random_matrix(kind, 8, 256)
    data = raw.data.copy()
    at = 208 if kind == "Q6_K" else 0
    data[at : at + 2] = np.array([half], "<u2").view(np.uint8)
    with pytest.raises(ModelFileError, match="NaN or infinite"):
        kernels.pack(RawTensor(kind, 8, 256, data))


def test_bytes_that_do_not_fit_the_shape_are_refused() -> None:
    raw = random_matrix("Q4_K", 8, 256)
    for wrong in (raw.data[:-1], np.concatenate([raw.data, raw.data[:1]])):
        with pytest.raises(ModelFileError, match="bytes"):
            kernels.pack(RawTensor("Q4_K", 8, 256, wrong))
    with pytest.raises(ModelFileError, match="whole blocks"):
        kernels.packed_bytes("Q4_K", 8, 128)
    with pytest.raises(ModelFileError, match="out of range"):
        kernels.packed_bytes("Q4_0", 0, 32)
    with pytest.raises(ModelFileError, match="wrong size"):
        kernels.pack(raw, out=np.empty(10, np.uint8))


@pytest.mark.parametrize("kind", ["F16", "F32", "Q2_K", "IQ4_NL"])
def test_linear_layers_of_other_types_are_refused_by_name(kind: str) -> None:
    with pytest.raises(UnsupportedModelError, match=kind):
        kernels.packed_bytes(kind, 8, 256)
