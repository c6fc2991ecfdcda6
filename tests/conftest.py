"""Fixtures every test may use: real weights by marker, and a seal around the user's folders and the network.

Knows nothing of what is tested. Invariant: no test sees the user's settings, caches or journal, and none reaches beyond
this machine.
"""

import itertools
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs
import pytest

# Resolved at import, before anything seals the user's folders off.
_MODELS = Path(os.environ.get("REDRAFT_TEST_MODELS") or Path(platformdirs.user_data_dir("redraft")) / "models")

_EXPORTED = Path(platformdirs.user_cache_dir("redraft")) / "test-exports"
"""Models of GGUF files as folders for transformers: 1.3 GB that are written once, by the hash of the file."""
_EXPORT_VERSION = 1
"""Raised when what `editor_engine.export` writes changes."""

_NUMBERS = itertools.count()
_PACKED = "packed"


def pytest_configure() -> None:
    """Let ctrl-C be what it is: a shell that starts us in the background ignores it, and children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def _sealed_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    homes = tmp_path_factory.mktemp("homes")
    yield homes
    shutil.rmtree(homes / _PACKED, ignore_errors=True)  # pytest would keep a GB for each of its last three runs


@pytest.fixture(autouse=True)
def sealed(request: pytest.FixtureRequest, _sealed_homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty folders of its own for every test, none of our variables, and no network but loopback."""
    home = _sealed_homes / str(next(_NUMBERS))
    for kind in ("CONFIG", "STATE", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "runtime"))  # else a test might find the user's own server
    if any(request.node.get_closest_marker(marker) for marker in ("model", "slow")):
        # Packing real weights takes seconds and hundreds of MB; they are keyed by hash, so that tests may share them.
        monkeypatch.setenv("XDG_CACHE_HOME", str(_sealed_homes / _PACKED))
    for variable in [name for name in os.environ if name.startswith("REDRAFT_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setattr(socket.socket, "connect", _loopback_only(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", _loopback_only(socket.socket.connect_ex))


def _loopback_only(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        inet = self.family in (socket.AF_INET, socket.AF_INET6)
        if inet and address[0] not in ("localhost", "::1") and not str(address[0]).startswith("127."):
            pytest.fail(f"a test tried to reach {address[0]}")
        return connect(self, address)

    return guarded


def _weights(name: str) -> Path:
    path = _MODELS / name
    if not path.is_file():
        sentence = f"{name} is not in {_MODELS}; `redraft models pull` fetches it"
        if os.environ.get("CI") == "true":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return path


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2 135M (llama family, tied head)."""
    return _weights("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="session")
def qwen05_path() -> Path:
    """Qwen2.5 Coder 0.5B."""
    return _weights("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")


@pytest.fixture(scope="session")
def qwen15_path() -> Path:
    """Qwen2.5 Coder 1.5B."""
    return _weights("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Family and type of weights -> folder of its tiny random Hugging Face checkpoint, made once."""
    pytest.importorskip("transformers")
    from tests.support.tiny_checkpoints import make_checkpoint  # torch: seconds

    root, made = tmp_path_factory.mktemp("checkpoints"), dict[str, Path]()

    def folder(family: str, dtype: str = "float32") -> Path:
        name = f"{family}-{dtype}"
        if name not in made:
            made[name] = make_checkpoint(root / name, family, dtype=dtype)
        return made[name]

    return folder


@pytest.fixture(scope="session")
def qwen05_folder(qwen05_path: Path) -> Path:
    """Qwen2.5 Coder 0.5B for transformers: the GGUF file's weights dequantised to float16."""
    from editor_engine.export import export_folder
    from editor_engine.store.hashing import hash_file

    folder = _EXPORTED / f"{hash_file(qwen05_path)[:16]}-float16-v{_EXPORT_VERSION}" / "qwen2.5-coder-0.5b"
    if not folder.is_dir():
        export_folder(qwen05_path, folder, "float16")
    return folder
