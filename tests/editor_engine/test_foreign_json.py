"""JSON of others: an object comes out, or a sentence that names the file."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from editor_engine.errors import EngineError, ModelFileError, ModelMissingError
from editor_engine.foreign_json import count, parse_object, read_kept, read_object, read_object_if_there, shown


def test_an_object_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"a": [1, {"b": "\\u00e9"}]}', "utf-8")
    assert read_object(tmp_path / "config.json") == {"a": [1, {"b": "é"}]}
    assert read_object_if_there(tmp_path / "other.json") == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "config.json is damaged: Expecting value"),
        (b'{"a": 1', "is damaged"),
        (b"\xff", "is damaged"),
        (b"3", "holds no JSON object"),
        (b'{"a": Infinity}', "Infinity is no number"),
        (b'{"a": 1, "b": 2, "a": 3}', "'a' twice"),
        (b'{"a": ' * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is damaged"),
    ],
)
def test_damage_is_a_sentence(data: bytes, words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        parse_object("config.json", data)


def test_size_pipes_folders_and_locks(tmp_path: Path) -> None:
    (tmp_path / "long.json").write_bytes(b'{"a": 1}')
    with pytest.raises(ModelFileError, match="more than 7 bytes"):
        read_object(tmp_path / "long.json", 7)
    os.mkfifo(tmp_path / "pipe.json")
    for name in ("pipe.json", "."):
        with pytest.raises(ModelFileError, match="not a regular file"):
            read_object(tmp_path / name)
    with pytest.raises(ModelMissingError, match="There is no file"):
        read_object(tmp_path / "absent.json")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_object(tmp_path / "loop.json")


@pytest.mark.timeout(20)
def test_what_was_kept_is_an_object_or_lost(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    assert read_kept(path) == {}
    for damage in ("", "[]", "[" * 200_000, "9" * 5000, '{"a": NaN}', "\x00"):
        path.write_text(damage)
        assert read_kept(path) == {}
    path.write_text('{"a": 1}')
    assert read_kept(path) == {"a": 1}
    path.unlink()
    os.mkfifo(path)
    assert read_kept(path) == {}


@hypothesis_settings(derandomize=True, deadline=None, max_examples=300)
@given(st.binary(max_size=60) | st.text('{}[]":,0123456789eE.-+tfn aru\\', max_size=60).map(str.encode))
def test_any_bytes_give_an_object_or_a_sentence(data: bytes) -> None:
    try:
        assert isinstance(parse_object("x.json", data), dict)
    except EngineError as error:
        assert str(error).startswith("x.json is damaged: ")


def test_counts(tmp_path: Path) -> None:
    settings: dict[str, object] = {"a": None, "b": 3, "c": 0, "d": True, "e": 2.0, "f": 2**31}
    assert count("config.json", settings, "missing", "a", "b") == 3
    assert count("config.json", settings, "missing", "a") is None
    for key in "cdef":
        with pytest.raises(ModelFileError, match=f"config.json is damaged: {key} is"):
            count("config.json", settings, key)
    assert len(shown("x" * 1000)) == 60
