"""A transformers model with the weights of a GGUF file, dequantised by the independent package `gguf`, in fp32.

Shares no code with the engine: names, the permutation of q and k in `llama` files, and every number are read here
anew. transformers' own loader does the same for 69 s and more on the 0.5B file; one slow test compares the two.
"""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers


def _values(reader: Any) -> dict[str, Any]:
    return {name: field.contents() for name, field in reader.fields.items() if "tokenizer" not in name}


def _unpermuted(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows (pair, side) of a `llama` file back to (side, pair), which transformers rotates."""
    dim = weight.shape[0] // heads
    return weight.reshape(heads, dim // 2, 2, *weight.shape[1:]).transpose(1, 2).reshape(weight.shape)


def reference_model(path: Path) -> Any:
    """A `LlamaForCausalLM` or `Qwen2ForCausalLM` in evaluation mode, fp32, eager attention."""
    reader = gguf.GGUFReader(path)
    found = _values(reader)
    family = found["general.architecture"]
    heads = int(found[f"{family}.attention.head_count"])
    kv_heads = int(found[f"{family}.attention.head_count_kv"])
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    hidden = int(found[f"{family}.embedding_length"])
    kind, config_kind = {
        "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig),
        "qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config),
    }[family]
    config = config_kind(
        vocab_size=int(tensors["token_embd.weight"].shape[1]),
        hidden_size=hidden,
        intermediate_size=int(found[f"{family}.feed_forward_length"]),
        num_hidden_layers=int(found[f"{family}.block_count"]),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=int(found.get(f"{family}.attention.key_length", hidden // heads)),
        max_position_embeddings=int(found[f"{family}.context_length"]),
        rms_norm_eps=float(found[f"{family}.attention.layer_norm_rms_epsilon"]),
        rope_parameters={"rope_type": "default", "rope_theta": float(found[f"{family}.rope.freq_base"])},
        tie_word_embeddings="output.weight" not in tensors,
        attn_implementation="eager",
        dtype=torch.float32,
    )
    if family == "llama":
        config.attention_bias = "blk.0.attn_q.bias" in tensors
    with torch.device("meta"):
        model = kind(config)
    state = {}
    for name, tensor in tensors.items():
        if name == "rope_freqs.weight":
            continue
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        weight = torch.from_numpy(values.copy()).float()
        if family == "llama" and ".attn_q." in name:
            weight = _unpermuted(weight, heads)
        elif family == "llama" and ".attn_k." in name:
            weight = _unpermuted(weight, kv_heads)
        state[_theirs(name)] = weight
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    missing = model.load_state_dict(state, assign=True, strict=False)
    # attention_bias gives llama a bias on o_proj too, which no file has.
    unfilled = [name for name in missing.missing_keys if not name.endswith("o_proj.bias")]
    assert not unfilled and not missing.unexpected_keys, (unfilled, missing.unexpected_keys)
    for module in model.modules():
        if getattr(module, "bias", None) is not None and module.bias.is_meta:
            module.bias = torch.nn.Parameter(torch.zeros(module.bias.shape))
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    if "rope_freqs.weight" in tensors:
        factors = torch.from_numpy(tensors["rope_freqs.weight"].data.copy())
        model.model.rotary_emb.inv_freq = model.model.rotary_emb.inv_freq / factors
    return model.eval()


_PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def _theirs(name: str) -> str:
    if name.startswith("blk."):
        _, layer, part, what = name.split(".")
        return f"model.layers.{layer}.{_PARTS[part]}.{what}"
    return {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "output.weight": "lm_head.weight",
    }[name]


def reference_logits(model: Any, tokens: list[int]) -> Any:
    """Logits after every position, a float32 numpy array [tokens, vocabulary]."""
    with torch.inference_mode():
        return model(torch.tensor([tokens])).logits[0].numpy()


def reference_greedy(model: Any, tokens: list[int], count: int) -> list[int]:
    """`count` greedy ids after `tokens`, everything computed anew for each: the plainest loop there is."""
    out: list[int] = []
    with torch.inference_mode():
        for _ in range(count):
            answer = model(torch.tensor([tokens + out]), use_cache=False, logits_to_keep=1)
            out.append(int(answer.logits[0, -1].argmax()))
    return out


def assert_same_model(ours: np.ndarray, theirs: np.ndarray, bound: float) -> None:
    """Logits [tokens, vocabulary] differ by less than `bound`, and choose the same ids wherever that decides it."""
    difference = float(np.abs(ours - theirs).max())
    print(f"float twin against transformers: largest difference {difference:.1e}, largest logit {theirs.max():.1f}")
    assert ours.shape == theirs.shape
    assert difference < bound
    ordered = np.sort(theirs, axis=1)
    decided = ordered[:, -1] - ordered[:, -2] > 2 * bound
    assert decided.mean() > 0.9
    assert np.array_equal(ours.argmax(axis=1)[decided], theirs.argmax(axis=1)[decided])
