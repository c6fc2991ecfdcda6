"""What is in the models folder, what is handed out of it, what is taken in and removed."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from editor_engine.config import model_cache_dir, models_dir
from editor_engine.errors import FetchError, ModelFileError, ModelMissingError
from editor_engine.store import installed as store
from editor_engine.store import sources
from editor_engine.store.catalogue import CatalogueModel
from editor_engine.store.importing import import_file
from editor_engine.store.installed import find_installed, installed, locate, record_path, remove, verify, write_record
from tests.support.saboteur import die, in_child
from tests.support.wheel_index import content, index_model, use_catalogue

SMALL = "qwen2.5-coder-0.5b"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogueModel:
    """A catalogue of one model, and an empty models folder that exists."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    models_dir().mkdir(parents=True)
    model = index_model(tmp_path / "wheels")
    use_catalogue(monkeypatch, model)
    return model


def put(name: str, data: bytes) -> Path:
    path = models_dir() / name
    path.write_bytes(data)
    return path


def test_no_folder_is_no_model(model: CatalogueModel) -> None:
    models_dir().rmdir()
    assert installed() == []


def test_only_gguf_files_that_are_not_hidden_count(model: CatalogueModel) -> None:
    for name in ("tiny-q4.gguf.part", ".hidden.gguf", "notes.txt"):
        put(name, b"x")
    (models_dir() / "folder.gguf").mkdir()
    put("own.gguf", b"GGUF")
    put(model.file, content())
    assert [(entry.id, entry.whole) for entry in installed()] == [("tiny", None), ("own", None)]


def test_a_file_put_there_by_hand_is_hashed_once(model: CatalogueModel, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(model.file, content())
    assert locate("tiny").sha256 == model.sha256
    monkeypatch.setattr(store, "hash_file", None)
    located = locate("tiny")
    assert (located.path, located.sha256, located.id, located.reason) == (path, model.sha256, "tiny", None)


@pytest.mark.parametrize("record", ["", "[]", "{}", '{"sha256": 1, "bytes": 2, "mtime_ns": 3}', "\0"])
def test_a_damaged_record_only_costs_a_hash(model: CatalogueModel, record: str) -> None:
    path = put(model.file, content())
    record_path(path).write_text(record)
    assert locate("tiny").sha256 == model.sha256


def test_a_file_written_to_since_is_hashed_again(model: CatalogueModel) -> None:
    path = put(model.file, content())
    write_record(path, model.sha256)
    path.write_bytes(b"x" * model.bytes)
    with pytest.raises(ModelFileError, match="is damaged"):
        locate("tiny")


def test_a_path_is_a_model_outside_the_store(model: CatalogueModel, tmp_path: Path) -> None:
    own = tmp_path / "mine.gguf"
    own.write_bytes(b"GGUF")
    located = locate(str(own))
    assert (located.path, located.sha256, located.id) == (own, None, "mine")
    with pytest.raises(ModelMissingError, match=r"There is no model file .*absent\.gguf"):
        locate(str(tmp_path / "absent.gguf"))


def test_a_file_of_a_checkpoint_says_to_give_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("config.json", "model.safetensors", "pytorch_model.bin")
    for name in names:
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for name in names:
        for given in (name, str(tmp_path / name)):
            with pytest.raises(
                ModelMissingError, match=f"{name} is one file of .* give the folder it lies in, {tmp_path}"
            ):
                locate(given)


@pytest.mark.parametrize("name", ["a" * 5000, "a/" * 3000, "b" * 300 + ".gguf"])
def test_a_name_that_no_path_can_have_is_no_model(name: str) -> None:
    with pytest.raises(ModelMissingError, match="cannot be looked up: File name too long") as raised:
        locate(name)
    assert len(str(raised.value)) < 200


def test_a_folder_that_may_not_be_looked_into_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shut(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", shut)
    with pytest.raises(ModelMissingError, match=r"cannot be looked up: Permission denied\.$"):
        locate(str(tmp_path / "shut" / "model"))


def test_a_missing_model_says_what_to_type(model: CatalogueModel) -> None:
    with pytest.raises(ModelMissingError, match="tiny is not installed; `redraft models pull tiny` fetches it"):
        locate("tiny")
    with pytest.raises(
        ModelMissingError, match=r"'nonsense'; give the path of a \.gguf file or of a folder, .*, or one of: tiny"
    ):
        locate("nonsense")


def test_the_default_is_among_the_installed_ones(
    model: CatalogueModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(model, id=SMALL, file="small.gguf")
    tests_only = replace(model, id="for-tests", file="for-tests.gguf", for_tests=True)
    use_catalogue(monkeypatch, small, model, tests_only)
    monkeypatch.setattr(store, "available_bytes", lambda: 5 * 10**9)
    put(tests_only.file, content())
    with pytest.raises(ModelMissingError, match=rf"pull` fetches {SMALL} .*with --model: for-tests"):
        locate()
    put(model.file, content())
    assert locate().id == "tiny"  # no default is here, but one that fits is
    put(small.file, content())
    located = locate()
    assert located.id == SMALL and located.reason and "5.0 GB of memory" in located.reason


def test_removing_frees_what_was_derived_too(model: CatalogueModel) -> None:
    path = put(model.file, content())
    entry = verify(find_installed("tiny") or pytest.fail("not installed"))
    derived = model_cache_dir() / model.sha256
    derived.mkdir(parents=True)
    (derived / "packed-v1").write_bytes(b"x" * 100)
    assert remove(entry) == model.bytes + 100
    assert not derived.exists() and not path.exists() and list(models_dir().iterdir()) == []
    with pytest.raises(ModelFileError, match="cannot be removed: No such file"):
        remove(entry)


def test_importing_knows_a_model_by_its_hash(model: CatalogueModel, tmp_path: Path) -> None:
    source = tmp_path / "some name.gguf"
    source.write_bytes(content())
    entry = import_file(source)
    assert (entry.id, entry.whole, entry.path) == ("tiny", True, models_dir() / model.file)
    assert entry.path.read_bytes() == source.read_bytes() == content()
    with pytest.raises(ModelFileError, match="is tiny by its SHA-256, not other"):
        import_file(source, "other")


def test_an_uncatalogued_file_keeps_its_name_and_is_verified_against_its_import(
    model: CatalogueModel, tmp_path: Path
) -> None:
    source = tmp_path / "mine.gguf"
    source.write_bytes(b"GGUF my own")
    entry = import_file(source)
    assert (entry.id, entry.model, entry.whole) == ("mine", None, True)
    assert verify(entry).whole is True
    entry.path.write_bytes(b"GGUF my 0wn")
    with pytest.raises(ModelFileError, match="import it again"):
        verify(entry)


@pytest.mark.parametrize("name", ["tiny", "tiny-q4"])
def test_nothing_else_is_stored_under_a_catalogued_name(model: CatalogueModel, tmp_path: Path, name: str) -> None:
    source = tmp_path / "mine.gguf"
    source.write_bytes(b"GGUF my own")
    with pytest.raises(ModelFileError, match="is not tiny: its SHA-256 is"):
        import_file(source, name)
    assert list(models_dir().iterdir()) == []


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "a\\b"])
def test_a_name_never_leads_out_of_the_folder(model: CatalogueModel, tmp_path: Path, name: str) -> None:
    source = tmp_path / "mine.gguf"
    source.write_bytes(b"GGUF")
    with pytest.raises(ModelFileError, match="cannot be the name of a model"):
        import_file(source, name)


def test_what_a_killed_import_left_is_removed_by_the_next_one(model: CatalogueModel, tmp_path: Path) -> None:
    large, small = tmp_path / "large.gguf", tmp_path / "small.gguf"
    large.write_bytes(content() * 40)
    small.write_bytes(content())
    assert in_child(lambda: import_file(large, on_bytes=lambda done: die())) == -signal.SIGKILL
    (left,) = models_dir().iterdir()
    assert left.stat().st_size > 0

    def meanwhile(done: int) -> None:
        """Another import, which must not take this one for a dead one."""
        if not (models_dir() / model.file).exists():
            import_file(small)

    assert import_file(large, "mine", meanwhile).path.read_bytes() == content() * 40
    assert {path.name for path in models_dir().iterdir() if path.suffix != ".json"} == {"mine.gguf", model.file}


def test_what_cannot_be_imported_leaves_nothing(
    model: CatalogueModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "mine.gguf"
    with pytest.raises(ModelFileError, match="cannot be imported: No such file"):
        import_file(source)
    source.write_bytes(b"PK\3\4")
    with pytest.raises(ModelFileError, match="is not a GGUF file"):
        import_file(source)
    source.write_bytes(content())
    monkeypatch.setattr(sources, "_SPARE_BYTES", 1 << 60)
    with pytest.raises(FetchError, match="free some space"):
        import_file(source)
    assert list(models_dir().iterdir()) == []
