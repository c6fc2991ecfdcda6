"""Folders from a hub on the loopback interface: what is fetched, what never is, and everything that can go wrong."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from editor_engine.errors import FetchError, ModelFileError
from editor_engine.store import sources
from editor_engine.store.fetch_folder import ask_hub, discard_partial_folder, pull_folder
from editor_engine.store.hub_folders import RECORD, HubId, hub_dir, parse_hub_id
from editor_engine.store.installed import find_installed, locate, verify
from editor_engine.store.sources import FetchEvent, Fetching
from tests.support.fake_hub import COMMIT, FakeHub, serving
from tests.support.light_checkpoints import light_checkpoint

TINY = HubId("owner/tiny", None)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub with a whole checkpoint and much that is of no use; a user's token lies in the environment."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub = FakeHub()
    hub.files = {path.name: path.read_bytes() for path in light_checkpoint(tmp_path / "source").iterdir()}
    hub.files |= {
        "README.md": b"read me",
        "pytorch_model.bin": b"\x80\x04pickle",
        "modeling_tiny.py": b"print('boo')",
        "onnx/model.onnx": b"onnx",
        "original/model.safetensors": b"no",
        "model.fp16.safetensors": b"no",
        "LICENSE": b"Apache",
    }
    with serving(hub):
        yield hub


def quiet(event: FetchEvent) -> None:
    """Nobody listens."""


def pulled(hub: FakeHub, hub_id: HubId = TINY) -> Path:
    return pull_folder(ask_hub(hub_id, hub.endpoint), quiet, hub.endpoint).path


WANTED = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "LICENSE"}


def test_safetensors_json_and_tokenizer_are_fetched_and_nothing_else(hub: FakeHub) -> None:
    repository, events = ask_hub(TINY, hub.endpoint), list[FetchEvent]()
    assert (repository.commit, repository.licence, repository.is_free) == (COMMIT, "apache-2.0", True)
    assert repository.bytes == sum(len(hub.files[name]) for name in WANTED)
    entry = pull_folder(repository, events.append, hub.endpoint)
    assert {path.name for path in entry.path.iterdir()} == WANTED | {RECORD}
    assert all((entry.path / name).read_bytes() == hub.files[name] for name in WANTED)
    assert set(hub.downloads()) == WANTED
    assert hub.downloads()[-1] == "model.safetensors"  # small ones first: what cannot be run is seen early
    assert hub.tokens == {None}
    assert (entry.id, entry.whole, entry.model) == ("owner/tiny", True, None)
    done = [event.done for event in events if isinstance(event, Fetching)]
    assert done == sorted(done) and (done[0], done[-1]) == (0, repository.bytes)
    assert {path.name for path in hub_dir().iterdir()} == {"owner--tiny", ".owner--tiny.lock"}
    assert locate("owner/tiny").path == entry.path


def test_what_is_here_and_whole_is_not_fetched_again(hub: FakeHub) -> None:
    path = pulled(hub)
    before = len(hub.downloads())
    assert pulled(hub) == path
    assert len(hub.downloads()) == before


def test_a_revision_has_a_folder_of_its_own(hub: FakeHub) -> None:
    at = parse_hub_id("owner/tiny@main")
    assert at is not None
    assert pulled(hub, at).name == "owner--tiny@main"
    found = find_installed("owner/tiny@main")
    assert found is not None and found.whole
    with pytest.raises(FetchError, match="The model hub has no owner/tiny@v9 that may be fetched without an account"):
        ask_hub(HubId("owner/tiny", "v9"), hub.endpoint)


def test_a_pull_that_stopped_continues_with_the_files_that_are_missing(hub: FakeHub) -> None:
    hub.missing = {"tokenizer.json"}
    with pytest.raises(FetchError, match=r"tokenizer\.json of owner/tiny could not be fetched .*arrived is kept"):
        pulled(hub)
    assert find_installed("owner/tiny") is None
    arrived = set(hub.downloads()) - {"tokenizer.json"}
    assert arrived
    hub.missing, hub.requests = set(), []
    pulled(hub)
    assert set(hub.downloads()) == WANTED - arrived


LARGE = bytes(range(256)) * 1200
"""Weights of some length, as bytes."""

DRIVER = """
import sys
from editor_engine.store.fetch_folder import ask_hub, pull_folder
from editor_engine.store.hub_folders import HubId

pull_folder(ask_hub(HubId("owner/tiny", None), sys.argv[1]), lambda event: None, sys.argv[1])
"""


def test_a_killed_pull_continues_within_the_file(hub: FakeHub) -> None:
    hub.files["model.safetensors"] = LARGE
    hub.stalled = {"model.safetensors": 150_000}
    with subprocess.Popen([sys.executable, "-c", DRIVER, hub.endpoint]) as process:
        assert hub.stopped.wait(60)
        parts: list[Path] = []
        while not (parts and parts[0].stat().st_size >= 100_000):  # what is on its way arrives
            assert process.poll() is None
            parts = list((hub_dir() / ".owner--tiny.part").glob(".model.safetensors.*"))
        part = parts[0]
        process.send_signal(signal.SIGKILL)
    kept = part.stat().st_size
    assert part.read_bytes() == LARGE[:kept]
    assert find_installed("owner/tiny") is None
    path = pulled(hub) / "model.safetensors"
    assert path.read_bytes() == LARGE
    assert hub.ranges == [f"bytes={kept}-"]


@pytest.mark.parametrize("takes_ranges", [True, False])
def test_a_connection_that_breaks_is_taken_up_again(hub: FakeHub, takes_ranges: bool) -> None:
    hub.files["model.safetensors"] = LARGE
    hub.broken, hub.takes_ranges = {"model.safetensors": 100_000}, takes_ranges
    assert (pulled(hub) / "model.safetensors").read_bytes() == LARGE
    assert hub.ranges == (["bytes=100000-"] if takes_ranges else [])


def test_a_connection_that_brings_nothing_ends_the_pull(hub: FakeHub) -> None:
    hub.broken = {"model.safetensors": 0}
    with pytest.raises(FetchError, match=r"model\.safetensors of owner/tiny could not be fetched .*arrived is kept"):
        pulled(hub)
    hub.swapped = {"model.safetensors": hub.files["model.safetensors"] + b"more"}
    with pytest.raises(FetchError, match=r"it sends more than the \d+ bytes it told of"):
        pulled(hub)
    hub.swapped = {}
    assert (pulled(hub) / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_what_another_commit_left_is_not_continued(hub: FakeHub) -> None:
    hub.missing = {"model.safetensors"}
    with pytest.raises(FetchError):
        pulled(hub)
    hub.missing, hub.requests = set(), []
    hub.files["config.json"] += b" "
    assert {path.name for path in pulled(hub).iterdir()} == WANTED | {RECORD}
    assert set(hub.downloads()) == {"model.safetensors", "config.json"}


def test_bytes_that_are_not_those_told_of_are_refused_and_removed(hub: FakeHub) -> None:
    for name in ("config.json", "model.safetensors"):
        data = bytearray(hub.files[name])
        data[-2] ^= 1
        hub.swapped = {name: bytes(data)}
        with pytest.raises(FetchError, match=f"{name} of owner/tiny did not arrive as the model hub describes it"):
            pulled(hub)
        assert find_installed("owner/tiny") is None
    hub.swapped = {}
    entry = find_installed(pulled(hub).name.replace("--", "/"))
    assert entry is not None and verify(entry).whole


def test_a_damaged_folder_is_found_by_verify_and_replaced(hub: FakeHub) -> None:
    path = pulled(hub) / "model.safetensors"
    status, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # silently: size and time are as before
    entry = find_installed("owner/tiny")
    assert entry is not None and entry.whole
    with pytest.raises(ModelFileError, match=r"model\.safetensors is damaged: its SHA-256 is"):
        verify(entry)
    again = find_installed("owner/tiny")
    assert again is not None and again.whole is None
    pulled(hub)
    assert path.read_bytes() == hub.files["model.safetensors"]


def test_a_full_disk_is_seen_before_anything_is_fetched(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int

    monkeypatch.setattr(sources.shutil, "disk_usage", lambda path: Usage(5_000_000))
    with pytest.raises(FetchError, match="has 5 MB free"):
        pulled(hub)
    assert hub.downloads() == []


def test_what_a_stopped_pull_left_can_be_discarded(hub: FakeHub) -> None:
    hub.missing = {"model.safetensors"}
    with pytest.raises(FetchError):
        pulled(hub)
    assert discard_partial_folder(TINY, quiet) >= len(hub.files["config.json"])
    assert discard_partial_folder(TINY, quiet) == 0


# --- what is refused before anything is fetched -----------------------------------------------------------------------


def refused(hub: FakeHub, words: str) -> None:
    with pytest.raises(FetchError, match=words):
        ask_hub(TINY, hub.endpoint)
    assert hub.downloads() == []


def test_pickles_adapters_and_nothing_at_all(hub: FakeHub) -> None:
    weights = hub.files.pop("model.safetensors")
    refused(hub, "has only pickled weights, which can run any code")
    del hub.files["pytorch_model.bin"]
    refused(hub, "has no safetensors")
    hub.files |= {"adapter_config.json": b"{}", "model.safetensors": weights}
    refused(hub, "is a PEFT adapter, not a whole model")


def test_terms_of_the_hub_and_repositories_that_are_not_there(hub: FakeHub) -> None:
    hub.facts["gated"] = "manual"
    refused(hub, r"has terms that must be agreed to on the model hub.*`hf download owner/tiny`")
    hub.repository = "owner/other"
    refused(hub, "The model hub has no owner/tiny")
    with pytest.raises(FetchError, match="owner/tiny could not be fetched from the model hub: ConnectError"):
        ask_hub(TINY, "http://127.0.0.1:9")


@pytest.mark.parametrize("card", [None, {}, {"license": "gemma"}, {"license": ["mit"]}])
def test_other_licences_are_for_the_user_to_agree_to(hub: FakeHub, card: dict[str, object] | None) -> None:
    hub.facts["cardData"] = card
    repository = ask_hub(TINY, hub.endpoint)
    assert not repository.is_free
    assert repository.licence == ("gemma" if card and card.get("license") == "gemma" else None)


def test_shards_are_taken_where_there_is_no_single_file(hub: FakeHub) -> None:
    single = hub.files["model.safetensors"]
    hub.files["model-00001-of-00001.safetensors"] = single
    names = {file.name for file in ask_hub(TINY, hub.endpoint).files}
    assert names == WANTED
    del hub.files["model.safetensors"]
    hub.files["model.safetensors.index.json"] = b"{}"
    names = {file.name for file in ask_hub(TINY, hub.endpoint).files}
    assert names == WANTED - {"model.safetensors"} | {
        "model-00001-of-00001.safetensors",
        "model.safetensors.index.json",
    }


def test_a_hub_that_names_no_commit_is_not_fetched_from(hub: FakeHub) -> None:
    hub.facts["sha"] = "../../etc"
    refused(hub, "does not say which commit")
