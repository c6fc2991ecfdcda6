"""The packages of the extra: whether they are here, and that they stay silent.

Knows how they are installed and how they talk. Invariant: a package that is missing or cannot be loaded is one sentence
with the command that mends it; nothing of theirs reaches the user's terminal, the network or the standard output.
"""

import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from editor_engine.errors import UnsupportedModelError

COMMAND = "pip install 'redraft[hf]'"
"""As README has it; from a checkout `make setup` does it."""

PACKAGES = ("torch", "transformers", "accelerate")
QUANTISER = "bitsandbytes"

_NO_LIBRARY = "cannot open shared object file"


def require(quantise: bool, find: Callable[[str], object] = find_spec) -> None:
    """Raise UnsupportedModelError when a package is missing; imports nothing."""
    needed = (*PACKAGES, QUANTISER) if quantise else PACKAGES
    missing = [name for name in needed if find(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UnsupportedModelError(
            f"A Hugging Face checkpoint needs {', '.join(missing)}, which {verb} not installed here: {COMMAND}."
        )


def load(quantise: bool, load_one: Callable[[str], object] = importlib.import_module) -> None:
    """Import the packages, quietly. Raises UnsupportedModelError when one cannot be loaded."""
    os.environ.setdefault("USE_HUB_KERNELS", "0")  # transformers: the same, and it asks when a model is made
    # Threads of torch spin while they wait for each other. Where other programs use the processors too, that stops the
    # ones waited for: a pass of one row of 0.5B took 2.0 s spinning, 0.45 s sleeping (2 processors, 6 busy programs).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with _no_kernels_from_elsewhere():
        for name in (*PACKAGES, QUANTISER) if quantise else PACKAGES:
            with hushed():
                logging.getLogger(name).setLevel(logging.CRITICAL)
                try:
                    load_one(name)
                except Exception as error:  # also OSError, RuntimeError: what a broken library raises is its own affair
                    raise UnsupportedModelError(_why(name, error)) from error


def _why(name: str, error: Exception) -> str:
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    if _NO_LIBRARY in first:
        library = first.split(":")[0]
        return (
            f"{name} cannot be loaded: the library {library} is missing. It comes with the driver or with the CUDA "
            f"packages of {name}; a build of torch for the CPU does without it."
        )
    return f"{name} is installed and cannot be loaded: {first.rstrip('.')}. Installing it anew may help: {COMMAND}."


@contextmanager
def hushed() -> Iterator[None]:
    """Warnings of the packages are for those who write against them, not for who edits a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _no_kernels_from_elsewhere() -> Iterator[None]:
    """Where a package `kernels` is installed, bitsandbytes fetches compiled code with it from a hub and runs it, while
    it is imported; nobody was asked."""
    if "kernels" in sys.modules:
        yield
        return
    sys.modules["kernels"] = None  # type: ignore[assignment]  # what importlib takes as: not there
    try:
        yield
    finally:
        del sys.modules["kernels"]


def silence() -> None:
    """No progress bars and no log lines of transformers, for the life of this process."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity(logging.CRITICAL)
    transformers_logging.disable_progress_bar()
