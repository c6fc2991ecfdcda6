"""Models loaded from the tiny checkpoints."""

from collections.abc import Callable
from pathlib import Path

import pytest

from editor_engine.config import EngineConfig, HfOptions
from editor_engine.models.hf.checkpoint import open_folder
from editor_engine.models.hf.load import load_hf
from editor_engine.models.hf.model import HfModel

Load = Callable[..., HfModel]


@pytest.fixture(scope="session")
def load(folder_of: Callable[..., Path]) -> Load:
    """family, options of HfOptions -> a model with one thread, loaded anew."""

    def loaded(family: str, stored: str = "float32", context: int | None = None, **options: object) -> HfModel:
        folder = folder_of(family, stored)
        config = EngineConfig(folder, 1, context, hf=HfOptions(**options))  # type: ignore[arg-type]
        return load_hf(open_folder(folder), config)[0]

    return loaded
