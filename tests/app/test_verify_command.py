"""`redraft verify` as a person and as a program meet it, over a tiny random model."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from app.bench.identity_cases import identity_cases
from app.cli import main
from app.errors import ExitCode
from editor_engine.models.native.model import NativeModel
from tests.support.tiny_gguf import TinyShape, tiny_source


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = tiny_source(shape=TinyShape(context=2048), seed=5)
    return str(source.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf"))


def test_equal_cases_and_one_hash_for_people_and_programs(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["verify", "--model", tiny, "--threads", "1", "--tokens", "8"]
    assert main([*options, "--json"]) == ExitCode.OK
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["type"], line["workload"], line["exit_code"], line["error"]) == ("result", "verify", 0, None)
    assert line["cases"] == line["equal"] == len(identity_cases(8)) and line["first_difference"] is None
    assert line["contract_version"] == line["conditions"]["contract_version"] == 1
    assert len(line["token_hash"]) == 64 and line["drafted"] > 0
    assert main([*options, "--isa", "scalar", "--hostile"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert line["token_hash"] in out and "same ids     9 of 9 cases" in out and "unruly" in err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_difference_is_exit_1_with_its_place(
    tiny: str, as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forward = NativeModel.forward

    def faulty(self: NativeModel, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        choices = forward(self, tokens, head_rows=head_rows)
        return choices if head_rows < 2 else [*choices[:-1], choices[-1] ^ 1]

    monkeypatch.setattr(NativeModel, "forward", faulty)
    options = ["verify", "--model", tiny, "--tokens", "8", *(["--json"] if as_json else [])]
    assert main(options) == ExitCode.REFUSED
    out, err = capsys.readouterr()
    assert "redraft: Drafting changed the output: " in err and "Traceback" not in err
    if as_json:
        (line,) = map(json.loads, out.splitlines())
        assert (line["outcome"], line["exit_code"], line["error"]["code"]) == ("refused", 1, "difference")
        assert line["equal"] < line["cases"]
        assert line["first_difference"].keys() == {"case", "drafter", "position", "plain", "drafted"}
    else:
        assert "NO, " in out and "token hash" in out


@pytest.mark.parametrize("place", ["option", "environment"])
def test_a_draft_model_is_verified_as_edits_use_it(
    tiny: str, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = str(tiny_source("qwen2", shape=TinyShape(context=2048), seed=6).write(tmp_path / "draft.gguf"))
    options = ["verify", "--model", tiny, "--threads", "1", "--tokens", "8", "--json"]
    assert main(options) == ExitCode.OK
    (alone,) = map(json.loads, capsys.readouterr().out.splitlines())
    if place == "environment":
        monkeypatch.setenv("REDRAFT_DRAFT_MODEL", draft)
    else:
        options += ["--draft-model", draft]
    assert main(options) == ExitCode.OK
    out, err = capsys.readouterr()
    (line,) = map(json.loads, out.splitlines())
    assert line["cases"] == line["equal"] and line["token_hash"] == alone["token_hash"]
    assert line["draft_model"]["name"] == line["conditions"]["draft_model"] == "Tiny qwen2"
    assert line["draft_model"]["drafted"] > 0 and alone["draft_model"] is None
    assert line["conditions"]["drafters"] == [*alone["conditions"]["drafters"], "draft model", "draft model last"]
    assert "draft model last" in err


def test_a_draft_model_that_cannot_draft_is_refused(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tiny_source(shape=TinyShape(context=2048), seed=6)
    tokens = other.metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list)
    tokens[tokens.index("<|im_start|>")] = "<|turn|>"
    draft = str(other.write(tmp_path / "other.gguf"))
    assert main(["verify", "--model", tiny, "--draft-model", draft, "--tokens", "8"]) == ExitCode.ENGINE
    assert "their vocabularies differ" in capsys.readouterr().err
    assert main(["verify", "--model", tiny, "--draft-model", "/nowhere.gguf", "--tokens", "8"]) == ExitCode.ENGINE
    assert "/nowhere.gguf" in capsys.readouterr().err


def test_cases_are_fixed_and_differ() -> None:
    cases = identity_cases(5)
    assert len({case.name for case in cases}) == len({case.request for case in cases}) == len(cases)
    assert {case.request.max_tokens for case in cases} == {5}
    assert {case.request.temperature > 0 for case in cases} == {False, True}
    assert any("class Parcel" in case.request.source for case in cases)


def test_what_makes_no_sense_is_usage(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--model", tiny, "--isa", "abacus"]) == ExitCode.USAGE
    assert "'abacus' does not run here" in capsys.readouterr().err
    assert main(["verify", "--model", tiny, "--tokens", "0"]) == ExitCode.USAGE


def test_a_checkpoint_of_hugging_face_is_verified_and_measured_too(
    folder_of: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--model", str(folder_of("Qwen2")), "--threads", "1", "--dtype", "bfloat16", "--json"]
    pair = ["--draft-model", str(folder_of("Llama"))]
    assert main(["verify", *options, *pair, "--tokens", "8"]) == ExitCode.OK
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert line["equal"] == line["cases"] and line["conditions"]["isa"] == "bfloat16 sdpa"
    assert line["draft_model"]["name"] == "Llama-float32"
    assert main(["bench", "plain", *options, "--contexts", "20", "--steps", "2", "--repeats", "1"]) == ExitCode.OK
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert line["plain_tok_s"]["20"]["median"] > 0
    assert main(["verify", *options, "--max-memory", "100MB"]) == ExitCode.ENGINE
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert line["error"]["code"] == "memory" and "--max-memory allows 100 MB" in line["error"]["message"]
