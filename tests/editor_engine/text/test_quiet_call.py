"""A call that panics raises here and prints nothing, and nobody else's words are lost while it runs."""

import os
import sys
import threading

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from editor_engine.text import quiet_call as module
from editor_engine.text.quiet_call import PanicError, quiet_call

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="descriptors of a thread's own are Linux's")


def panics() -> object:
    bpe = Tokenizer(models.BPE({"a": 0}, []))
    bpe.pre_tokenizer = pre_tokenizers.Split(Regex("(a|aa)+$"), "isolated")
    return bpe.encode("a" * 300 + " b")


def test_what_a_call_returns_or_raises_comes_back() -> None:
    assert quiet_call(lambda: 3) == 3
    error = ValueError("x")

    def fails() -> None:
        raise error

    with pytest.raises(ValueError) as caught:
        quiet_call(fails)
    assert caught.value is error


@only_linux
def test_a_panic_is_an_exception_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PanicError, match="retry-limit-in-match over"):
        quiet_call(panics)
    assert capfd.readouterr() == ("", "")


def test_without_descriptors_of_its_own_it_is_an_exception_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "other")
    with pytest.raises(PanicError, match="retry-limit-in-match over"):
        quiet_call(panics)


@only_linux
def test_other_threads_are_heard_meanwhile(capfd: pytest.CaptureFixture[str]) -> None:
    runs, said = threading.Event(), threading.Event()

    def call() -> None:
        os.write(2, b"of the library\n")
        runs.set()
        assert said.wait(60)
        os.write(2, b"of the library\n")

    def say() -> None:
        assert runs.wait(60)
        os.write(2, b"of another thread\n")
        said.set()

    other = threading.Thread(target=say)
    other.start()
    quiet_call(call)
    other.join()
    os.write(2, b"of the caller\n")
    assert capfd.readouterr().err == "of another thread\nof the caller\n"


@only_linux
def test_no_descriptor_is_left_or_taken_away() -> None:
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(10):
        quiet_call(lambda: None)
    assert sorted(os.listdir("/proc/self/fd")) == before
