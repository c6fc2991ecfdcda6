"""Inputs that kernel tests share: random and adversarial activations, random raw matrices, tiny models in memory.

Everything is derived from a seed. Knows the kernels' public face and the tiny checkpoints, nothing of files.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from editor_engine import kernels
from editor_engine.kernels import ModelShape, RawTensor
from tests.support.tiny_gguf import TinyShape, random_blocks, tiny_source

Floats = npt.NDArray[np.float32]

ROW_COUNTS = (2, 3, 4, 5, 7, 8, 16, 33, 64)
"""The passes of more than one row that the exactness contract names."""


def random_rows(rows: int, k: int, seed: int = 0) -> Floats:
    """Rows of very different sizes, none like its neighbour."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, k)) * 10.0 ** rng.uniform(-3, 3, (rows, 1))
    return x.astype(np.float32)


def adversarial_rows(k: int) -> Floats:
    """Zeros of both signs, denormals, huge and lopsided values, ties of the rounding, one value alone."""
    tiny, huge = np.float32(1e-45), np.float32(1e30)
    rows = [
        np.zeros(k),
        np.full(k, -0.0),
        np.where(np.arange(k) % 2, tiny, -3 * tiny),
        np.where(np.arange(k) % 3, tiny * 190, tiny * 64),
        np.where(np.arange(k) % 5, huge, -huge),
        np.where(np.arange(k) == k // 2, huge, tiny),
        (np.arange(k) % 255 - 127) / 2,
        np.where(np.arange(k) % 32 == 0, 127.0, (np.arange(k) % 32) + 0.5),
        np.where(np.arange(k) % 2, 1.0, -1.0),
    ]
    return np.stack(rows).astype(np.float32)


def random_matrix(kind: str, n: int, k: int, seed: int = 0) -> RawTensor:
    """A random [n, k] matrix in GGUF's bytes; every quant of the type occurs."""
    data = random_blocks(np.random.default_rng(seed), kind, n, k, gain=4.0)
    return RawTensor(kind, n, k, np.frombuffer(data, np.uint8))


@dataclass(frozen=True)
class TinyModel:
    """A random checkpoint in memory, as the kernels and their twin take it."""

    shape: ModelShape
    raw: dict[str, RawTensor | Floats]
    """By GGUF names; `output.weight` is always there."""

    def load(self, *, isa: str | None = None, threads: int = 1) -> kernels.Model:
        tensors: dict[str, kernels.PackedTensor | RawTensor | Floats] = {}
        for name, tensor in self.raw.items():
            linear = isinstance(tensor, RawTensor) and name != "token_embd.weight"
            tensors[name] = kernels.pack(tensor) if linear and isinstance(tensor, RawTensor) else tensor
        return kernels.Model(self.shape, tensors, threads=threads, isa=isa)


def tiny_model(
    family: str, kind: str, *, tied: bool = False, factors: bool = False, seed: int = 0, context: int = 256
) -> TinyModel:
    wide = kind.endswith("_K")
    sizes = TinyShape(hidden=256, heads=8, kv_heads=2, head_dim=32, ffn=256) if wide else TinyShape()
    source = tiny_source(family, kind=kind, shape=sizes, seed=seed, tied=tied)
    raw: dict[str, RawTensor | Floats] = {}
    for name, (type_name, dims, data) in source.tensors.items():
        if len(dims) == 1:
            raw[name] = np.frombuffer(data, np.float32)
        else:
            raw[name] = RawTensor(type_name, dims[1], dims[0], np.frombuffer(data, np.uint8))
    raw.setdefault("output.weight", raw["token_embd.weight"])
    embedding = raw["token_embd.weight"]
    assert isinstance(embedding, RawTensor)
    divisors = np.linspace(1, 8, sizes.head_dim // 2, dtype=np.float32) if factors else None
    shape = ModelShape(
        layers=sizes.layers,
        hidden=sizes.hidden,
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        ffn=sizes.ffn,
        vocab=embedding.n,
        rms_eps=1e-5,
        rope_base=10000.0,
        rope_halves=family == "qwen2",
        rope_factors=divisors,
        context=context,
    )
    return TinyModel(shape, raw)
