"""Weights from the model hub, at the pinned revision, through huggingface_hub.

Knows nothing of the package index. Sends no token. Invariant: what it returns lies in a folder of its own beside the
models and has not been trusted yet: the caller hashes it.
"""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from editor_engine.errors import FetchError
from editor_engine.store.catalogue import CatalogueModel
from editor_engine.store.sources import Fetching, Report, require_space

SOURCE = "model hub"
ANSWER_SECONDS = 10.0
"""What the hub may take to answer a question before it is said to be out of reach."""


def fetch_from_hub(model: CatalogueModel, folder: Path, report: Report, endpoint: str | None = None) -> Path:
    """Download the file into `folder` (continuing what an earlier call left there) and return where it lies.

    `endpoint` is the hub's address; None takes huggingface_hub's own (HF_ENDPOINT). Raises FetchError with the reason.
    """
    if model.repository is None or model.revision is None:
        raise FetchError(f"it does not carry {model.id}")
    # An HTTP client comes with it: 0.3 s that only a fetch pays.
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    with hub_errors():
        url = hf_hub_url(model.repository, model.file, revision=model.revision, endpoint=endpoint)
        # One question first: the download itself asks for half a minute before it gives up on a missing network.
        facts = get_hf_file_metadata(url, token=False, timeout=ANSWER_SECONDS)
        if facts.size is not None and facts.size != model.bytes:
            raise FetchError(f"its file has {facts.size} bytes, not {model.bytes}")
        require_space(folder.parent, model.bytes)
        report(Fetching(SOURCE, 0, model.bytes))
        path = hf_hub_download(
            model.repository,
            model.file,
            revision=model.revision,
            local_dir=folder,
            endpoint=endpoint,
            token=False,
            tqdm_class=_meter(model.bytes, report),
        )
    return Path(path)


@contextlib.contextmanager
def hub_errors() -> Iterator[None]:
    """Make whatever fails inside a FetchError with the reason, a clause that may stand alone."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it says each of its attempts on stderr
    try:
        yield
    except FetchError:
        raise
    except Exception as error:  # huggingface_hub's errors and those of its HTTP client, which differs by version
        reason = next(iter(str(error).splitlines()), "")
        raise FetchError(f"{type(error).__name__}: {reason}" if reason else type(error).__name__) from error


def _meter(total: int, report: Report) -> type:
    """A class with the part of tqdm's face that huggingface_hub uses, which reports instead of drawing."""

    class Meter:
        def __init__(self, *_: object, initial: int = 0, **__: object) -> None:
            self.n = initial

        def update(self, n: float | None = 1) -> None:
            self.n += int(n or 0)
            report(Fetching(SOURCE, min(self.n, total), total))

        def __enter__(self) -> "Meter":
            return self

        def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
            return None

        def close(self) -> None:
            return None

        def refresh(self) -> None:
            return None

        def set_description(self, *_: object, **__: object) -> None:
            return None

    return Meter
