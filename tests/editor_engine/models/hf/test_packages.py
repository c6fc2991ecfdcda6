"""The extra's packages: missing and broken ones are one sentence, and importing our package costs none of them."""

import subprocess
import sys

import pytest

from editor_engine.errors import UnsupportedModelError
from editor_engine.models.hf import packages


@pytest.mark.parametrize(
    ("missing", "quantise", "words"),
    [
        (("torch",), False, r"needs torch, which is not installed here: pip install 'redraft\[hf\]'\."),
        (("torch", "transformers"), False, "needs torch, transformers, which are not installed"),
        (("bitsandbytes",), True, "needs bitsandbytes, which is"),
    ],
)
def test_a_missing_package_is_named_with_the_command(missing: tuple[str, ...], quantise: bool, words: str) -> None:
    with pytest.raises(UnsupportedModelError, match=words):
        packages.require(quantise, lambda name: None if name in missing else object())


def test_bitsandbytes_is_only_needed_to_quantise() -> None:
    packages.require(False, lambda name: None if name == "bitsandbytes" else object())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            OSError("libcublas.so.12: cannot open shared object file: No such file or directory"),
            "the library libcublas.so.12 is missing",
        ),
        (ImportError("cannot import name 'x'.\nMore"), "installed and cannot be loaded: cannot import name 'x'. Inst"),
        (RuntimeError(""), "cannot be loaded: RuntimeError"),
    ],
)
def test_a_broken_package_is_one_sentence(error: Exception, words: str) -> None:
    def load_one(name: str) -> object:
        raise error

    with pytest.raises(UnsupportedModelError, match=words) as raised:
        packages.load(False, load_one)
    assert "\n" not in str(raised.value)


def test_code_from_elsewhere_is_out_of_reach_while_packages_are_loaded() -> None:
    def load_one(name: str) -> object:
        with pytest.raises(ImportError):
            __import__("kernels")
        return None

    packages.load(True, load_one)
    assert "kernels" not in sys.modules


def test_importing_our_package_imports_none_of_theirs() -> None:
    code = (
        "import sys, editor_engine.models.hf, editor_engine.models.hf.checkpoint, editor_engine.models.hf.load;"
        "print([n for n in ('torch', 'transformers', 'bitsandbytes', 'accelerate') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
