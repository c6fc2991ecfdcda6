"""Where a model runs: which device is there, what it says of itself, and which layers go to it.

Knows torch's view of graphics processors; nothing of models but a list of layers. Invariant: a device that was asked
for and is not there is refused in one sentence; `auto` never fails, and what it took is said.
"""

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from editor_engine.config import HfOptions
from editor_engine.errors import OptionError, UnsupportedModelError
from editor_engine.models.hf.layers import layers_there

_OLD_DRIVER = "driver on your system is too old"


@dataclass(frozen=True)
class Cuda:
    """What torch sees of NVIDIA's processors."""

    count: int
    reason: str
    """Why there are none, as the end of a sentence; empty where there are."""


@dataclass(frozen=True)
class Place:
    """Where the weights go."""

    device: str
    """`cpu` or `cuda:N`: of the first `layers` decoder layers, and of the rest too where they are all of them."""
    layers: int
    """Decoder layers on the device."""
    of: int
    """Decoder layers there are."""

    @property
    def split(self) -> bool:
        """Some layers are on the device and the others on the CPU."""
        return self.device != "cpu" and self.layers < self.of

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.device} ({self.layers} of {self.of} layers), cpu" if self.split else self.device


def see_cuda(cuda: Any = torch.cuda) -> Cuda:
    """Ask torch, whose warnings are where it says what is wrong with a driver or a library."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if cuda.is_available():
                return Cuda(int(cuda.device_count()), "")
            said = [str(warning.message) for warning in caught]
        except (RuntimeError, OSError) as error:
            said = [str(error)]
    return Cuda(0, _reason(said, torch.version.cuda))


def _reason(said: Sequence[str], built_for: str | None) -> str:
    text = said[0] if said else ""
    if _OLD_DRIVER in text:
        version = re.search(r"found version (\d+)", text)
        has = f" (it knows CUDA {_version(version.group(1))})" if version else ""
        return f"the NVIDIA driver is too old for this build of torch, which needs CUDA {built_for}{has}; update it"
    if text:
        return f"torch says: {text.splitlines()[0].rstrip('. ')}"
    if built_for is None:
        return "this build of torch is for the CPU only"
    return "no NVIDIA driver or no graphics processor was found"


def _version(number: str) -> str:
    """`12040` -> `12.4`."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"


def choose_place(options: HfOptions, layers: int, cuda: Cuda, too_small: str) -> tuple[Place, tuple[str, ...]]:
    """Where to put a model of `layers` layers, and what a user should know about it.

    `too_small`: why not all of it fits the first graphics processor, as a sentence; empty where it does. Raises
    UnsupportedModelError for a device that is not there, OptionError for what cannot be meant.
    """
    asked, wanted = options.device, layers_there(options, layers)
    if asked == "cpu" or (wanted == 0 and asked == "auto"):
        return Place("cpu", layers, layers), ()
    if asked == "auto":
        if cuda.count == 0:
            if wanted:
                raise UnsupportedModelError(f"There is no graphics processor for {wanted} layers: {cuda.reason}.")
            return Place("cpu", layers, layers), ()
        if wanted is None and too_small:
            return Place("cpu", layers, layers), (too_small,)
        asked = "cuda:0"
    number = _number(asked)
    if number >= cuda.count:
        why = cuda.reason or f"there are {cuda.count}, counted from 0"
        raise UnsupportedModelError(f"The device {asked} cannot be used: {why}.")
    count = layers if wanted is None else wanted
    return Place(f"cuda:{number}" if count else "cpu", count or layers, layers), ()


def _number(device: str) -> int:
    match = re.fullmatch(r"cuda(?::(\d{1,4}))?", device)
    if match is None:
        raise OptionError(f"There is no device {device!r}; cpu, cuda and cuda:N are known.")
    return int(match.group(1) or 0)


def split(layers: Sequence[torch.nn.Module], place: Place) -> None:
    """Move the first layers to the device; each layer then takes what it is given to where it is."""
    for number, layer in enumerate(layers):
        device = torch.device(place.device if number < place.layers else "cpu")
        layer.to(device)
        layer.register_forward_pre_hook(_taking_to(device), with_kwargs=True)


def _taking_to(device: torch.device) -> Callable[..., tuple[Any, Any]]:
    def hook(module: object, given: Any, named: Any) -> tuple[Any, Any]:
        return moved(given, device), moved(named, device)

    return hook


def moved(value: Any, device: torch.device) -> Any:
    """`value` with every tensor in it on `device`; other things as they are."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(moved(part, device) for part in value)
    if type(value) is dict:
        return {name: moved(part, device) for name, part in value.items()}
    return value
