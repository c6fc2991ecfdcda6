"""What a folder with a Hugging Face checkpoint holds, checked against itself, or a clear refusal.

Reads JSON and the headers of the weights; knows nothing of torch and runs nothing the folder brings. Light: a look at a
model that will not be loaded costs milliseconds. Invariant: a checkpoint that was made has whole safetensors with every
tensor its index names, and says itself how large it is; pickled weights and adapters never get that far.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from editor_engine.errors import ModelFileError, ModelMissingError, UnsupportedModelError
from editor_engine.foreign_json import count, open_regular, read_object, read_object_if_there, shown
from editor_engine.quant.safetensors import SafetensorsFile, StoredTensor, read_table
from editor_engine.text.stop_ids import CONFIG, GENERATION_CONFIG, end_ids

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt")
"""One of them is in every folder that has a tokenizer; which can be run is the tokenizer's to say."""

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
"""Weights in these are programs that a reader executes."""

FLOATS = ("F32", "F16", "BF16", "F64")
"""Types of weights that can be run; a checkpoint quantised by bitsandbytes has U8 and I8 as well."""

UNSAID_CONTEXT = 2048
"""Tokens of context of a model whose configuration names no limit."""

_HEADS = ("lm_head.weight", "embed_out.weight")
_EMBEDDINGS = (
    "embed_tokens.weight",
    "wte.weight",
    "word_embeddings.weight",
    "embed_in.weight",
    "tok_embeddings.weight",
)
_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_INDEX_LIMIT = 64 << 20
_SAMPLE = 1 << 12
_MOST_LABELS = 1 << 16  # of classes, which a language model has none of; transformers makes a name for each


@dataclass(frozen=True)
class Checkpoint:
    """A folder and what is in it."""

    folder: Path
    name: str
    """For people: the folder's name, or the repository's where the folder is in the cache of Hugging Face."""
    architecture: str
    """The configuration's first, for example `Qwen2ForCausalLM`; else its model type."""
    config: Mapping[str, Any]
    """config.json as it is; never to be written to."""
    generation: Mapping[str, Any]
    """generation_config.json; empty where there is none."""
    files: tuple[SafetensorsFile, ...]
    """The weights that are loaded, in the order of their names."""
    tensors: Mapping[str, StoredTensor]
    """Of all files."""
    remote_code: bool
    """The folder brings code that runs when it is loaded, and the user agreed."""

    @property
    def weights(self) -> tuple[Path, ...]:
        """Files with the weights."""
        return tuple(file.path for file in self.files)

    @property
    def weights_bytes(self) -> int:
        """Of all tensors, as they are stored."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def parameters(self) -> dict[str, int]:
        """Elements by the format's name of their type. Of weights packed by bitsandbytes it counts the bytes."""
        found: dict[str, int] = {}
        for tensor in self.tensors.values():
            elements = 1
            for size in tensor.shape:
                elements *= size
            found[tensor.dtype] = found.get(tensor.dtype, 0) + elements
        return found

    @property
    def text_config(self) -> Mapping[str, Any]:
        """The part of the configuration that is about text: of models that also see, one level down."""
        nested = self.config.get("text_config")
        return nested if isinstance(nested, dict) else self.config

    @property
    def rows(self) -> int:
        """Rows of the embedding: ids below this can be read, and most models can write them."""
        for name, tensor in self.tensors.items():
            if name.endswith(_EMBEDDINGS) and len(tensor.shape) == 2:
                return tensor.shape[0]
        return count(CONFIG, self.text_config, "vocab_size") or 0

    @property
    def tied(self) -> bool:
        """The head is the embedding."""
        return self.config.get("tie_word_embeddings") is True or not self._has_head

    @property
    def _has_head(self) -> bool:
        return any(name.endswith(_HEADS) for name in self.tensors)

    @property
    def context_length(self) -> int:
        """Most tokens the model was made for."""
        keys = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length")
        return count(CONFIG, self.text_config, *keys) or UNSAID_CONTEXT

    @property
    def layers(self) -> int | None:
        """Decoder layers; None where the configuration does not say."""
        return count(CONFIG, self.text_config, "num_hidden_layers", "n_layer")

    @property
    def kv_elements_per_token(self) -> int | None:
        """Numbers one token adds to the KV cache, in all layers; None for a cache this record does not know."""
        text = self.text_config
        kinds = text.get("layer_types")
        if isinstance(kinds, list) and not set(map(str, kinds)) <= {"full_attention", "sliding_attention"}:
            return None
        layers = self.layers
        heads = count(CONFIG, text, "num_attention_heads", "n_head")
        hidden = count(CONFIG, text, "hidden_size", "n_embd")
        if text.get("kv_lora_rank") is not None or layers is None or heads is None or hidden is None:
            return None
        head_dim = count(CONFIG, text, "head_dim") or max(1, hidden // heads)
        return layers * (count(CONFIG, text, "num_key_value_heads") or heads) * head_dim * 2

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a reply by either configuration, ascending; the tokenizer may name more."""
        return end_ids(self.config, self.generation)

    @property
    def sha256(self) -> str:
        """What tells this checkpoint from others: a hash over names, sizes and headers of its weights, the first and
        middle 4096 bytes of every tensor, and both configurations.

        Reading all bytes of a large model takes longer than loading it. Another training or quantisation changes
        every tensor somewhere in what is read; one bit that flips elsewhere is found by `redraft models verify`.
        """
        digest = hashlib.sha256()
        for settings in (CONFIG, GENERATION_CONFIG):
            path = self.folder / settings
            digest.update(path.read_bytes() if path.exists() else b"")
        for file in self.files:
            digest.update(f"\0{file.path.name}\0{file.size}\0".encode("utf-8", "surrogateescape") + file.header)
            with open_regular(file.path) as stream:
                for tensor in file.tensors.values():
                    for start in {tensor.offset, tensor.offset + tensor.nbytes // 2}:
                        stream.seek(start)
                        digest.update(stream.read(min(_SAMPLE, tensor.offset + tensor.nbytes - start)))
        return digest.hexdigest()


def open_folder(folder: Path, *, remote_code: bool = False) -> Checkpoint:
    """Read and check a folder; `remote_code` is the user's consent to run what code it brings.

    Raises ModelMissingError, ModelFileError for what is damaged, UnsupportedModelError for what is not run here.
    """
    try:
        return _opened(folder, remote_code)
    except OSError as error:  # files are opened elsewhere, with sentences of their own: a folder that is shut
        raise ModelFileError(f"{folder} cannot be read: {error.strerror or error}.") from error


def _opened(folder: Path, remote_code: bool) -> Checkpoint:
    if not folder.is_dir():
        raise ModelMissingError(f"There is no folder {folder}.")
    _refuse_adapter(folder)
    try:
        config = read_object(folder / CONFIG)
    except ModelMissingError as error:
        raise ModelMissingError(f"{folder} has no {CONFIG}, so it is no Hugging Face checkpoint.") from error
    architecture = _architecture(folder, config)
    needs_code = _needs_code(config)
    if needs_code and not remote_code:
        raise UnsupportedModelError(
            f"{folder.name} runs only with Python code that it brings along ({', '.join(needs_code)}), which is not "
            "executed unless you have read it and say --remote-code."
        )
    _refuse_foreign_quantisation(folder, config)
    _refuse_foreign_kernels(folder, config)
    files = _weights(folder)
    tensors = {name: tensor for file in files for name, tensor in file.tensors.items()}
    _refuse_types(folder, config, tensors)
    if not any((folder / name).exists() for name in TOKENIZER_FILES):
        raise ModelMissingError(
            f"{folder} has no tokenizer (tokenizer.json); fetch all of the model's repository, not only weights."
        )
    generation = read_object_if_there(folder / GENERATION_CONFIG)
    checkpoint = Checkpoint(folder, _name(folder), architecture, config, generation, files, tensors, bool(needs_code))
    _check(checkpoint)
    return checkpoint


def _name(folder: Path) -> str:
    """The folder's, except where it is a commit in the cache of Hugging Face; what the configuration says of its name
    is often that of the model it was trained from."""
    if folder.parent.name == "snapshots":
        return folder.parent.parent.name.removeprefix("models--").replace("--", "/")
    return folder.name


def _refuse_adapter(folder: Path) -> None:
    path = folder / "adapter_config.json"
    if path.exists():
        base = read_object(path).get("base_model_name_or_path")
        whole = f" {base!r}" if isinstance(base, str) else ""
        raise UnsupportedModelError(
            f"{folder.name} is a PEFT adapter, not a whole model: merge it into its base model{whole} "
            "(merge_and_unload, then save_pretrained) and give the merged folder."
        )


def _architecture(folder: Path, config: Mapping[str, Any]) -> str:
    kind, named = config.get("model_type"), config.get("architectures")
    first = named[0] if isinstance(named, list) and named else kind
    if not isinstance(first, str) or not isinstance(kind, str | None):
        raise ModelFileError(f"{folder / CONFIG} does not name the architecture of the model.")
    if config.get("is_encoder_decoder") is True or (first != kind and not first.endswith(_WRITERS)):
        raise UnsupportedModelError(f"{folder.name} is a {first}; this engine runs causal language models.")
    return first


def _needs_code(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Python files of the folder without which the model cannot be made; empty where transformers has its own."""
    brought = config.get("auto_map")
    if not isinstance(brought, dict) or not brought:
        return ()
    kind = config.get("model_type")
    if isinstance(kind, str) and kind.replace("-", "_").isidentifier():
        spec = find_spec("transformers")  # looks for it, imports nothing
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if (Path(place) / "models" / kind.replace("-", "_")).is_dir():
                return ()
    values = (value for value in brought.values() if isinstance(value, str))
    return tuple(sorted({value.split("--")[-1].split(".")[0] + ".py" for value in values})) or ("unnamed",)


def _refuse_foreign_quantisation(folder: Path, config: Mapping[str, Any]) -> None:
    settings = config.get("quantization_config")
    if settings is None:
        return
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    if method != "bitsandbytes":
        raise UnsupportedModelError(
            f"{folder.name} is quantised by {shown(method)}, which needs packages this engine does not use; take the "
            "model as it was published in bfloat16 or float16 and say --quantise nf4."
        )


def _refuse_foreign_kernels(folder: Path, config: Mapping[str, Any]) -> None:
    """A configuration may name a repository of the hub as its attention, from where compiled code would be fetched."""
    for part in (config, *(value for value in config.values() if isinstance(value, dict))):
        for key, value in part.items():
            named = value.values() if isinstance(value, dict) else [value]
            if "_implementation" in f"_{key}" and any("/" in name for name in named if isinstance(name, str)):
                raise UnsupportedModelError(
                    f"{folder.name} asks for compiled code of the model hub ({key} is {shown(value)}), which is never "
                    f"fetched; take that line out of its {CONFIG}."
                )


def _weights(folder: Path) -> tuple[SafetensorsFile, ...]:
    """The tables of the files that transformers would read."""
    if (folder / WEIGHTS).exists():
        return (read_table(folder / WEIGHTS),)
    if not (folder / INDEX).exists():
        raise _no_weights(folder)
    names = read_object(folder / INDEX, _INDEX_LIMIT).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(shard, str) for shard in names.values()):
        raise ModelFileError(f"{INDEX} is damaged: it does not say which file has which tensor.")
    shards = sorted(set(names.values()))
    for shard in shards:
        if Path(shard).name != shard or not shard.endswith(".safetensors"):
            raise ModelFileError(f"{INDEX} is damaged: {shown(shard)} is no name of a file beside it.")
    missing = [shard for shard in shards if not (folder / shard).exists()]
    if missing:
        raise ModelFileError(
            f"{folder} lacks {len(missing)} of {len(shards)} files of weights, {missing[0]} first; fetch them again."
        )
    files = tuple(read_table(folder / shard) for shard in shards)
    here = {name: file.path.name for file in files for name in file.tensors}
    if sum(len(file.tensors) for file in files) != len(here):
        raise ModelFileError(f"{folder} has one tensor in two files of weights, so it is damaged.")
    for name, shard in names.items():
        if here.get(name) != shard:
            raise ModelFileError(f"{INDEX} is damaged: {shard} has no tensor {shown(name)}.")
    return files


def _no_weights(folder: Path) -> ModelMissingError | UnsupportedModelError:
    for pattern in PICKLES:
        pickle = min((path.name for path in folder.glob(pattern)), default=None)
        if pickle is not None:
            return UnsupportedModelError(
                f"{folder.name} has pickled weights ({pickle}), which can run any code when they are opened: refused, "
                "only safetensors are loaded. Take a revision of the model that has them."
            )
    gguf = min((path for path in folder.glob("*.gguf")), default=None)
    hint = f"; to run {gguf.name}, give the path of that file" if gguf else ""
    return ModelMissingError(f"{folder} has no weights ({WEIGHTS} or {INDEX}){hint}.")


def _refuse_types(folder: Path, config: Mapping[str, Any], tensors: Mapping[str, StoredTensor]) -> None:
    """Matrices must be of a type that can be multiplied; buffers of whole numbers may lie beside them."""
    packed = ("U8", "I8") if config.get("quantization_config") is not None else ()
    for tensor in tensors.values():
        if len(tensor.shape) >= 2 and tensor.dtype not in (*FLOATS, *packed, "BOOL"):
            raise UnsupportedModelError(
                f"{folder.name} has {shown(tensor.name)} in {tensor.dtype}; this engine runs {', '.join(FLOATS)}."
            )


def _check(checkpoint: Checkpoint) -> None:
    """What the configuration says fits what the weights are; every number that is asked for later can be had."""
    promised, rows = count(CONFIG, checkpoint.text_config, "vocab_size"), checkpoint.rows
    if rows == 0:
        raise ModelFileError(f"{checkpoint.folder / CONFIG} does not say how many tokens the model has.")
    if promised is not None and promised != rows:
        raise ModelFileError(f"{checkpoint.folder.name} is damaged: it promises {promised} tokens and embeds {rows}.")
    if checkpoint.config.get("tie_word_embeddings") is False and not checkpoint._has_head:
        raise ModelFileError(
            f"{checkpoint.folder.name} is damaged: its head is not the embedding, and the weights have no {_HEADS[0]}."
        )
    layers = checkpoint.layers or 0
    if layers > len(checkpoint.tensors):
        raise ModelFileError(
            f"{checkpoint.folder.name} is damaged: it promises {layers} layers and has {len(checkpoint.tensors)} "
            "tensors."
        )
    for part in (checkpoint.config, checkpoint.text_config):
        labels = part.get("num_labels")
        if isinstance(labels, int) and labels > _MOST_LABELS:
            raise ModelFileError(f"{CONFIG} is damaged: num_labels is {shown(labels)}, which cannot be.")
    for number in checkpoint.eos_ids:
        if number >= rows:
            raise ModelFileError(
                f"{checkpoint.folder.name} is damaged: it ends replies with the token {number} and embeds {rows}."
            )
    _ = (checkpoint.context_length, checkpoint.kv_elements_per_token)  # raise here, before anything is loaded
