"""The benchmark's own file and turns are what the session needs."""

import ast

from prompts import bench_text


def test_the_file_is_whole_python_of_the_size_the_design_names() -> None:
    text = bench_text("parcels")
    assert {"Parcel", "Depot"} <= {node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}
    assert 100 <= len(text.splitlines()) <= 300 and "`" not in text and text.endswith("\n")


def test_the_turns_name_what_the_file_has() -> None:
    text = bench_text("parcels")
    for name in ("load", "debug", "release", "restore", "save", "BASE_CENTS", "heaviest", "bill"):
        assert name in text and name in bench_text("turns")
    assert "BASE_CENTS = 390" in text
