"""The slow, obvious twin of the forward pass in floats: dequantised weights, float activations, plain numpy, fp32.

Used by tests only. It knows nothing of 8-bit activations, of KV caches or of the kernels, and says what the *model* is:
where it agrees with transformers, the reading of the file, RoPE, eps and layout are right; how far the 8-bit path is
from it is the price of quantised activations. Invariant: no arithmetic here is shared with the kernels.

Formulas: Llama (Touvron et al. 2023) and Qwen2 (Yang et al. 2024): pre-norm RMSNorm, RoPE (Su et al. 2021), grouped
query attention, SwiGLU.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from editor_engine.models.native.checkpoint import EMBEDDING, HEAD, ROPE_FACTORS, Checkpoint
from editor_engine.quant.dequantise import dequantise

Floats = npt.NDArray[np.float32]


class FloatTwin:
    """A checkpoint as a function of token ids. Weights are dequantised at each use: slow, and small in memory."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._config = checkpoint.config

    def logits(self, tokens: Sequence[int]) -> Floats:
        """Logits after every position, float32 [tokens, vocabulary]."""
        x = self._tensor(EMBEDDING)[list(tokens)]
        for layer in range(self._config.layers):
            blk = f"blk.{layer}."
            x = x + self._attention(blk, self._norm(x, f"{blk}attn_norm.weight"))
            x = x + self._feed_forward(blk, self._norm(x, f"{blk}ffn_norm.weight"))
        head = EMBEDDING if self._checkpoint.tied else HEAD
        return self._linear(self._norm(x, "output_norm.weight"), head)

    def _tensor(self, name: str) -> Floats:
        file = self._checkpoint.file
        tensor = file.tensors[name]
        return dequantise(tensor.type_name, file.raw(name), tensor.shape)

    def _linear(self, x: Floats, name: str) -> Floats:
        y: Floats = x @ self._tensor(name).T
        bias = name.removesuffix("weight") + "bias"
        if bias in self._checkpoint.vectors:
            y += self._tensor(bias)
        return y

    def _norm(self, x: Floats, name: str) -> Floats:
        mean_square = np.mean(x * x, axis=1, keepdims=True)
        y: Floats = x / np.sqrt(mean_square + np.float32(self._config.rms_eps)) * self._tensor(name)
        return y

    def _attention(self, blk: str, x: Floats) -> Floats:
        config, rows = self._config, len(x)
        q = self._rotated(self._linear(x, f"{blk}attn_q.weight").reshape(rows, config.heads, config.head_dim))
        k = self._rotated(self._linear(x, f"{blk}attn_k.weight").reshape(rows, config.kv_heads, config.head_dim))
        v = self._linear(x, f"{blk}attn_v.weight").reshape(rows, config.kv_heads, config.head_dim)
        out = np.empty_like(q)
        future = np.triu(np.ones((rows, rows), bool), 1)
        for head in range(config.heads):
            shared = head // (config.heads // config.kv_heads)
            scores = q[:, head] @ k[:, shared].T / np.float32(np.sqrt(config.head_dim))
            scores[future] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, head] = weights / weights.sum(axis=1, keepdims=True) @ v[:, shared]
        return self._linear(out.reshape(rows, -1), f"{blk}attn_output.weight")

    def _rotated(self, x: Floats) -> Floats:
        """RoPE over [position, head, head_dim]."""
        half = self._config.head_dim // 2
        frequency = self._config.rope_base ** (-np.arange(half) / half)
        if ROPE_FACTORS in self._checkpoint.vectors:
            frequency = frequency / self._tensor(ROPE_FACTORS)
        angle = np.arange(len(x))[:, None, None] * frequency
        cosine, sine = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        out = np.empty_like(x)
        if self._config.rope_pairs:
            first, second = slice(0, None, 2), slice(1, None, 2)
        else:
            first, second = slice(0, half), slice(half, None)
        out[..., first] = x[..., first] * cosine - x[..., second] * sine
        out[..., second] = x[..., second] * cosine + x[..., first] * sine
        return out

    def _feed_forward(self, blk: str, x: Floats) -> Floats:
        gate, up = self._linear(x, f"{blk}ffn_gate.weight"), self._linear(x, f"{blk}ffn_up.weight")
        return self._linear(gate / (1 + np.exp(-gate)) * up, f"{blk}ffn_down.weight")
