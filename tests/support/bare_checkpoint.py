"""Writes folders that look like Hugging Face checkpoints and hold zeros: to be looked at, never to be loaded.

Needs no torch. Invariant: headers, sizes and configuration agree, as in a whole checkpoint.
"""

import json
from pathlib import Path

from editor_engine.quant.safetensors import PlannedTensor, write_header

LAYERS, HIDDEN, VOCABULARY, CONTEXT = 4, 64, 256, 4096
MATRIX = HIDDEN * HIDDEN
"""Elements of each layer's one matrix."""
EMBEDDING = VOCABULARY * HIDDEN
"""Elements of the embedding, and of the head."""
CACHE = LAYERS * HIDDEN * 2 // 2
"""Numbers that one token adds to the KV cache: keys and values of half as many heads as queries have."""


def write_bare(folder: Path, dtype: str = "BF16") -> Path:
    """A folder of LAYERS layers with a matrix each, an embedding and a head of its own."""
    folder.mkdir(parents=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_size": HIDDEN,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    layers = [f"model.layers.{layer}.self_attn.q_proj.weight" for layer in range(LAYERS)]
    tensors = [
        PlannedTensor("model.embed_tokens.weight", dtype, (VOCABULARY, HIDDEN)),
        *(PlannedTensor(name, dtype, (HIDDEN, HIDDEN)) for name in layers),
        PlannedTensor("lm_head.weight", dtype, (VOCABULARY, HIDDEN)),
    ]
    with (folder / "model.safetensors").open("wb") as stream:
        write_header(stream, tensors, {"format": "pt"})
        stream.write(bytes(sum(tensor.nbytes for tensor in tensors)))
    return folder
