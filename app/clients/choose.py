"""Which engine serves: the one named, else one that runs already and is just the right one, else one of our own.

    --engine URL > REDRAFT_ENGINE_URL > `engine.url` in the settings (`load_settings` orders the last two)
    > a running `redraft serve` on the default socket > this process, or a child of it

Knows no engine. Invariant: a running server is taken unasked only where its output is what an engine of this process
would say: same program version, same arithmetic, same model file, loaded with the same options.
"""

import json
import os
import socket
import stat
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from app.clients import in_process
from app.engine_client import EngineClient
from app.errors import UsageError
from app.load_options import LOAD_OPTIONS, Given, LoadOptions
from app.settings import Settings
from editor_engine.config import EngineConfig, socket_path
from editor_engine.errors import EngineError
from editor_engine.wire import EngineIdentity, identity_from_json

if TYPE_CHECKING:  # what looks into the models folder is needed only beside a running server
    from editor_engine.store.installed import LocatedModel

PROBE_S = 1.0
"""A server that does not say what it is by then is passed over."""


def choose(
    settings: Settings,
    *,
    engine: str | None = None,
    load: Given = MappingProxyType({}),
    child: bool = False,
    on_note: Callable[[str], None] = lambda sentence: None,
) -> EngineClient:
    """The client to use; nothing is loaded yet.

    Args:
        settings: what holds where an option was not given.
        engine: `--engine`: address of another engine.
        load: options of LOAD_OPTIONS that were given; with another engine, `model` is as that one names it.
        child: for front ends that must keep painting: an engine of our own gets a process of its own.
        on_note: hears, on another thread, how a child's loading goes and why it was started again.

    Raises UsageError for an address that is none, and for options that another engine would not hear of.
    """
    if place := engine or settings.engine_url:
        _refuse_unheard(place, load)
        model = load.get("model", settings.engine_model)
        return _http(place, None if model is None else str(model))
    options = settings.load.over(load)
    if child:
        from app.clients.child import ChildClient  # what starts processes: of no use to an `edit`

        return ChildClient(options, on_note=on_note)
    identity = running_server(socket_path())
    if identity is not None and _is_wanted(identity, options):
        return _http(f"unix:{socket_path()}", identity.model_id)
    return in_process.own_client(options)


def _refuse_unheard(place: str, load: Given) -> None:
    """How another engine loads its model was decided where it runs; threads have always been let pass."""
    unheard = [
        option.flag for option in LOAD_OPTIONS if option.name in load and option.name not in ("model", "threads")
    ]
    if unheard:
        raise UsageError(
            f"{', '.join(unheard)}: this is for an engine of our own; the engine {place!r} has loaded its model."
        )


def running_server(path: Path) -> EngineIdentity | None:
    """What a `redraft serve` that is ready on this socket says it is; None where there is none that is ours."""
    try:
        folder, found = path.parent.lstat(), path.lstat()
        ours = folder.st_uid == found.st_uid == os.geteuid()
        if not ours or not stat.S_ISSOCK(found.st_mode) or stat.S_IMODE(folder.st_mode) & 0o077:
            return None
        return _identity(path)
    except (OSError, EngineError):
        return None  # nothing there, left by a server that was killed, or of another version: we run our own


def _identity(path: Path) -> EngineIdentity | None:
    from http.client import HTTPConnection, HTTPException  # 20 ms that an edit without a server need not pay

    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(PROBE_S)
            sock.connect(os.fspath(path))
            connection = HTTPConnection("localhost", timeout=PROBE_S)
            connection.sock = sock
            connection.request("GET", "/health", headers={"connection": "close"})
            health = json.loads(connection.getresponse().read(1 << 20))
        return identity_from_json(health["engine"]) if health["engine"] else None
    except (HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None  # another program


def _is_wanted(identity: EngineIdentity, options: LoadOptions) -> bool:
    if identity.version != version("redraft"):
        return False
    from editor_engine.kernels import CONTRACT_VERSION  # 0.2 s, paid only where a server of this version runs

    if identity.backend == "native" and identity.contract_version != CONTRACT_VERSION:
        return False
    try:
        config, located = in_process.locate_models(options)
        if config.loaded_as != identity.loaded_as:
            return False
        return _sha256(located, config) == identity.sha256
    except EngineError:  # an engine of our own will say what is wrong with the model
        return False


def _sha256(located: "LocatedModel", config: EngineConfig) -> str | None:
    """What a load of the model would say it is; None for a file that nobody has hashed yet."""
    if not located.path.is_dir():
        return located.sha256
    from editor_engine.models.hf.checkpoint import open_folder  # of no use to who edits with a file

    return open_folder(located.path, remote_code=config.hf.remote_code).sha256


def _http(address: str, model: str | None) -> EngineClient:
    # The HTTP library costs 0.2 s that an engine of our own must not pay.
    from app.clients.http import http_client
    from app.clients.place import parse_place

    return http_client(parse_place(address), model)
