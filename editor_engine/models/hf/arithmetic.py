"""In what a checkpoint is multiplied: types, packing by bitsandbytes, and the implementation of attention.

Turns the user's options into transformers' arguments. Invariant: what was asked for and cannot be done is refused with
the reason; what `auto` chose is told, never guessed later.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch

from editor_engine.config import ATTENTIONS, DTYPES, QUANTISATIONS, HfOptions
from editor_engine.errors import OptionError, UnsupportedModelError
from editor_engine.models.hf.checkpoint import Checkpoint
from editor_engine.models.hf.sizes import chosen_dtype, computed_dtype

NO_OUTLIERS = 0.0
"""Threshold of int8. bitsandbytes' own, 6, multiplies the columns in another type where any row of the pass has a large
value, so what comes out for a row would depend on its neighbours."""


@dataclass(frozen=True)
class Arithmetic:
    """All that changes the numbers, but for the device."""

    dtype: str
    """Of weights that are not packed, and of activations."""
    computed: str
    """What packed weights are multiplied in; `dtype` without any."""
    quantise: str | None
    """How the weights are packed, by us or in the checkpoint; None: they are not."""
    double_quant: bool
    packed: bool
    """They are packed in the checkpoint."""
    rounding: str
    """What rounds most coarsely, a key of `guard.NOISE_SHARES`."""

    def words(self, attention: str) -> str:
        """For people, for example `nf4 (compute bfloat16, double) sdpa`."""
        if self.quantise is None:
            return f"{self.dtype} {attention}"
        double = ", double" if self.double_quant else ""
        return f"{self.quantise} (compute {self.computed}{double}) {attention}"


def check_options(options: HfOptions) -> None:
    """Raise OptionError for a value no option has."""
    for name, value, known in (
        ("dtype", options.dtype, DTYPES),
        ("compute dtype", options.compute_dtype, DTYPES),
        ("quantisation", options.quantise, (None, *QUANTISATIONS)),
        ("attention", options.attention, ATTENTIONS),
    ):
        if value not in known:
            names = ", ".join(known_name for known_name in known if known_name)
            raise OptionError(f"There is no {name} {value!r}; {names} are known.")
    if options.double_quant and options.quantise not in ("nf4", "fp4"):
        raise OptionError("Double quantisation is for nf4 and fp4.")


def choose_arithmetic(checkpoint: Checkpoint, options: HfOptions, device: str) -> Arithmetic:
    """For a device (`cpu`, `cuda:N`). Raises UnsupportedModelError for what it cannot do."""
    kind = device.split(":")[0]
    dtype = chosen_dtype(checkpoint, options, kind)
    computed = computed_dtype(options, dtype)
    quantise, double = options.quantise, options.double_quant
    packing = checkpoint.config.get("quantization_config")
    if packing is not None:
        if quantise is not None:
            raise UnsupportedModelError(
                f"{checkpoint.name} is packed by bitsandbytes already and cannot be packed again; leave --quantise out."
            )
        quantise = "int8" if packing.get("load_in_8bit") else str(packing.get("bnb_4bit_quant_type", "fp4"))
        computed = str(packing.get("bnb_4bit_compute_dtype", dtype)) if quantise != "int8" else dtype
        double = bool(packing.get("bnb_4bit_use_double_quant"))
    if kind == "cuda" and "bfloat16" in (dtype, computed) and not torch.cuda.is_bf16_supported(False):
        raise UnsupportedModelError("This graphics processor has no bfloat16; say --dtype float16.")
    rounding = _rounding(dtype, computed, quantise, kind)
    return Arithmetic(dtype, computed, quantise, double, packing is not None, rounding)


def _rounding(dtype: str, computed: str, quantise: str | None, kind: str) -> str:
    order = [name for name in ("float32", "float16", "bfloat16") if name in (dtype, computed)]
    if quantise == "int8":
        return "int8"  # activations are rounded to 8 bits, whatever the type around them
    if quantise is not None and kind == "cpu":
        return "bfloat16"  # what bitsandbytes multiplies in where the processor has it, whatever was asked for
    return order[-1] if order else "bfloat16"


def quantisation_config(arithmetic: Arithmetic) -> Any:
    """What transformers takes; None where nothing is packed."""
    if arithmetic.quantise is None or arithmetic.packed:
        return None
    from transformers import BitsAndBytesConfig

    if arithmetic.quantise == "int8":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=NO_OUTLIERS)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=arithmetic.quantise,
        bnb_4bit_compute_dtype=getattr(torch, arithmetic.computed),
        bnb_4bit_use_double_quant=arithmetic.double_quant,
    )


def check_attention(options: HfOptions, arithmetic: Arithmetic, device: str) -> None:
    """Raise UnsupportedModelError for an implementation that this machine cannot run, whatever the model."""
    if options.attention != "flash_attention_2":
        return
    if not device.startswith("cuda"):
        raise UnsupportedModelError("flash_attention_2 runs on a graphics processor only; sdpa and eager run anywhere.")
    if find_spec("flash_attn") is None:
        raise UnsupportedModelError("flash_attention_2 needs the package flash_attn, which is not installed here.")
    if arithmetic.dtype == "float32":
        raise UnsupportedModelError("flash_attention_2 knows no float32; say --dtype bfloat16 or float16.")
