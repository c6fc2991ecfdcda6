"""Names of the hub, where their folders lie, and whether they are whole."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.errors import ModelFileError, ModelMissingError
from editor_engine.store.hashing import hash_file
from editor_engine.store.hub_folders import (
    RECORD,
    HubId,
    find_folder,
    hub_dir,
    hub_folders,
    parse_hub_id,
    verify_folder,
    write_folder_record,
)
from editor_engine.store.installed import find_installed, installed, locate, remove
from tests.support.light_checkpoints import light_checkpoint
from tests.support.tiny_gguf import write_tiny


@pytest.fixture(autouse=True)
def no_cache_of_hugging_face(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)


def placed(name: str) -> Path:
    """A folder in its place, with a record."""
    hub_id = parse_hub_id(name)
    assert hub_id is not None
    folder = light_checkpoint(hub_id.folder)
    write_folder_record(folder, "0" * 40, {path.name: hash_file(path) for path in folder.iterdir()})
    return folder


@pytest.mark.parametrize(
    "text",
    ["Qwen/Qwen2.5-Coder-0.5B", "a/b", "a-b/c_d.e", "a/b@main", "a/b@refs/pr/3", "a/b@v1.0-rc", "A1/b@" + "0" * 40],
)
def test_names_of_the_hub(text: str) -> None:
    hub_id = parse_hub_id(text)
    assert hub_id is not None and str(hub_id) == text
    assert hub_id.folder.parent == hub_dir()


@pytest.mark.parametrize(
    "text",
    ["", "a", "a/b/c", "/a/b", "./a/b", "../b", "a/..", "a/b@", "a/b@../c", "a/b@/c", "-a/b", "a/.b", "a--b/c",
     "a/b@c d", "~/b", "a/b.", "a/b.gguf", "a\n/b", "a/b@x/"],
)  # fmt: skip
def test_what_is_no_name_of_the_hub(text: str) -> None:
    assert parse_hub_id(text) is None


@settings(derandomize=True, deadline=None)
@given(st.from_regex(r"[A-Za-z0-9._-]{1,6}/[A-Za-z0-9._-]{1,6}(@[A-Za-z0-9._/-]{1,6})?", fullmatch=True))
def test_a_name_has_one_folder_and_a_folder_one_name(text: str) -> None:
    hub_id = parse_hub_id(text)
    if hub_id is not None:
        assert hub_id.folder.parent == hub_dir() and hub_id.folder.name not in (".", "..")
        hub_id.folder.mkdir(parents=True, exist_ok=True)
        assert text in [folder.id for folder in hub_folders()]
        shutil.rmtree(hub_dir())


def test_folders_are_among_what_is_installed_and_found_by_name(tmp_path: Path) -> None:
    folder = placed("owner/tiny")
    (hub_dir() / ".owner--half.part").mkdir()
    (hub_dir() / "somebody's own").mkdir()
    (entry,) = installed()
    assert (entry.id, entry.path, entry.whole, entry.model) == ("owner/tiny", folder, True, None)
    assert entry.bytes == sum(path.stat().st_size for path in folder.iterdir())
    located = locate("owner/tiny")
    assert (located.path, located.id, located.sha256) == (folder, "owner/tiny", None)
    assert find_installed("owner/other") is None


def test_a_folder_that_was_written_to_is_not_known_to_be_whole() -> None:
    folder = placed("owner/tiny")
    (folder / "config.json").write_text("{}", "utf-8")
    entry = find_installed("owner/tiny")
    assert entry is not None and entry.whole is None
    with pytest.raises(ModelFileError, match=r"config\.json is damaged"):
        verify_folder(folder)
    with pytest.raises(ModelFileError, match="has no record of what was fetched"):
        verify_folder(folder)


@pytest.mark.parametrize(
    "record", [b"", b"[]", b'{"revision": "0"}', b'{"revision": 0, "files": {"a": 3}}', b'{"files": {}}', b"\xff"]
)
def test_a_record_that_is_none_of_ours_vouches_for_nothing(record: bytes) -> None:
    folder = placed("owner/tiny")
    (folder / RECORD).write_bytes(record)
    entry = find_installed("owner/tiny")
    assert entry is not None and entry.whole is None
    assert locate("owner/tiny").path == folder


def test_a_record_that_names_files_elsewhere_reads_none_of_them() -> None:
    folder = placed("owner/tiny")
    facts = {"sha256": "0" * 64, "bytes": 1, "mtime_ns": 1}
    (folder / RECORD).write_text(json.dumps({"revision": "0", "files": {"../../secret": facts}}), "utf-8")
    with pytest.raises(ModelFileError, match="has no record"):
        verify_folder(folder)


def test_remove_takes_the_folder_and_nothing_else() -> None:
    kept = placed("owner/other")
    folder = placed("owner/tiny")
    entry = find_installed("owner/tiny")
    assert entry is not None
    assert remove(entry) == entry.bytes
    assert (folder.exists(), kept.exists()) == (False, True)


# --- what a name means, in order --------------------------------------------------------------------------------------


def test_a_path_is_taken_before_a_name_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    placed("owner/tiny")
    monkeypatch.chdir(tmp_path)
    light_checkpoint(tmp_path / "owner" / "tiny")
    located = locate("owner/tiny")
    assert (located.path, located.id) == (tmp_path / "owner" / "tiny", "tiny")
    assert locate(str(tmp_path / "owner" / "tiny")).id == "tiny"
    assert locate("owner").path == tmp_path / "owner"
    write_tiny(tmp_path / "owner" / "x.gguf")
    assert locate("owner/x.gguf").path == tmp_path / "owner" / "x.gguf"


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"])
def test_a_model_in_the_cache_of_hugging_faces_own_tools_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    below = {"XDG_CACHE_HOME": "huggingface/hub", "HF_HOME": "hub", "HF_HUB_CACHE": ""}[variable]
    monkeypatch.setenv(variable, str(tmp_path))
    place, commit = tmp_path / below / "models--owner--tiny", "a" * 40
    snapshot = light_checkpoint(place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    assert locate("owner/tiny").path == snapshot
    assert locate(f"owner/tiny@{commit}").path == snapshot
    for revision in ("v2", "b" * 40):
        with pytest.raises(ModelMissingError, match=f"owner/tiny@{revision} is not here; `redraft models pull"):
            locate(f"owner/tiny@{revision}")
    os.mkfifo(place / "refs" / "pipe")
    for revision in ("pipe", "none"):
        assert find_folder(HubId("owner/tiny", revision)) is None
    (place / "refs" / "main").write_text("../../..")
    assert find_folder(HubId("owner/tiny", None)) is None
    placed("owner/tiny")
    assert locate("owner/tiny").path.parent == hub_dir()  # what was pulled comes first


def test_what_is_not_here_says_what_to_type() -> None:
    with pytest.raises(ModelMissingError, match=r"owner/tiny is not here; `redraft models pull owner/tiny` fetches it"):
        locate("owner/tiny")
    with pytest.raises(ModelMissingError, match=r"There is no model file or folder .*/absent"):
        locate("./absent/model")
