"""Conditions name the kind of machine and never the machine."""

import getpass
import json
import platform
from pathlib import Path

from editor_engine.bench.conditions import machine_conditions, package_version, processor, words


def test_the_processor_is_read_from_linux(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Big Core: 9000\n\nprocessor\t: 1\nmodel name\t: Little\n")
    assert processor(cpuinfo) == "Big Core: 9000"


def test_where_linux_says_nothing_the_platform_does(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: \n")
    assert processor(tmp_path / "cpuinfo") == processor(tmp_path / "missing") != ""


def test_neither_host_nor_user_is_named() -> None:
    values = [str(value) for value in machine_conditions().values()]
    assert platform.node() not in values and getpass.getuser() not in values
    json.dumps(machine_conditions())


def test_words_of_every_condition() -> None:
    assert words({"contexts": [8, 16], "model_id": None}) == "contexts  8, 16\nmodel id  unknown"


def test_a_missing_package_has_no_version() -> None:
    assert package_version("redraft") is not None
    assert package_version("no-such-package-of-ours") is None
