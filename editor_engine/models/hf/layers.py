"""How many decoder layers a model has and how many of them go to a graphics processor. Light: no torch.

Knows the configuration and the options, nothing of which devices there are. Invariant: what is asked of a model that it
cannot do is refused by the plan of a load and by the load in the same sentence.
"""

from editor_engine.config import HfOptions
from editor_engine.errors import ModelFileError, OptionError
from editor_engine.models.hf.checkpoint import Checkpoint


def layers_of(checkpoint: Checkpoint) -> int:
    """Decoder layers. Raises ModelFileError where the configuration does not say."""
    if checkpoint.layers is None:
        raise ModelFileError(f"The configuration of {checkpoint.name} does not say how many layers it has.")
    return checkpoint.layers


def layers_there(options: HfOptions, layers: int) -> int | None:
    """How many of `layers` were asked to go to a graphics processor; None: nobody said, so all or none.

    Raises OptionError for what cannot be meant.
    """
    wanted = options.gpu_layers
    if wanted is not None and not 0 <= wanted <= layers:
        raise OptionError(f"--gpu-layers {wanted} cannot be had: the model has {layers} layers.")
    if wanted and options.device == "cpu":
        raise OptionError(f"--gpu-layers {wanted} contradicts --device cpu.")
    return wanted
