"""`redraft bench` as a person and as a program meet it, over a tiny random model."""

import dataclasses
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from app.bench.serving import ServerFigures
from app.cli import main
from app.errors import ExitCode
from editor_engine.bench import peers
from editor_engine.bench.peer_process import PeerFailedError, PeerJob, PeerReply
from editor_engine.bench.rates import PASS_ROWS
from tests.support.tiny_gguf import TinyShape, tiny_source

TASK = {"id": "one", "before": "a = 1\nb = 2\n" * 5, "instruction": "Swap.", "after": "b = 2\na = 1\n" * 5}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = tiny_source(shape=TinyShape(context=2048), seed=5)
    return str(source.write(tmp_path_factory.mktemp("tiny") / "tiny.gguf"))


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    path = tmp_path / "tasks.jsonl"
    path.write_text(json.dumps(TASK) + "\n")
    return str(path)


def result(out: str, workload: str) -> dict[str, Any]:
    """The only JSON line of stdout."""
    (line,) = map(json.loads, out.splitlines())
    assert (line["schema_version"], line["type"], line["workload"]) == (1, "result", workload)
    assert isinstance(line, dict)
    return line


def test_prefill_by_context(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", tiny, "--threads", "1", "--contexts", "70,9", "--repeats", "2"]
    assert main(["bench", "prefill", *options, "--json"]) == ExitCode.OK
    line = result(capsys.readouterr().out, "prefill")
    assert list(line["prefill_tok_s"]) == ["9", "70"]
    assert line["base_context"] == 9 and line["over_base"]["70"]["runs"] == 2
    assert all(spread["runs"] == 2 and spread["min"] > 0 for spread in line["prefill_tok_s"].values())
    conditions = line["conditions"]
    assert (conditions["threads"], conditions["repeats"], len(conditions["model_sha256"])) == (1, 2, 64)
    assert main(["bench", "prefill", *options]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert "model sha256" in out and "context     70" in out and "of the rate at 9" in out and "run 2 of 2" in err


def test_plain_by_context_and_its_pass_table(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", tiny, "--contexts", "20", "--repeats", "1", "--json"]
    assert main(["bench", "plain", *options, "--steps", "3"]) == ExitCode.OK
    line = result(capsys.readouterr().out, "plain")
    assert line["plain_tok_s"]["20"]["median"] > 0 and line["conditions"]["steps"] == 3
    assert main(["bench", "plain", *options, "--passes"]) == ExitCode.OK
    (table,) = result(capsys.readouterr().out, "plain")["passes"]
    assert table["rows"] == list(PASS_ROWS) and len(table["cost"]) == len(PASS_ROWS) and table["context"] == 20
    assert main(["bench", "plain", *options, "--passes", "--rows", "5,1,5"]) == ExitCode.OK
    (table,) = result(capsys.readouterr().out, "plain")["passes"]
    assert table["rows"] == [1, 5]
    assert main(["bench", "plain", *options, "--passes", "--rows", "65"]) == ExitCode.USAGE


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["prefill", "--contexts", "8,x"], ExitCode.USAGE, "not a list of whole numbers"),
        (["prefill", "--contexts", "0"], ExitCode.USAGE, "not a list of whole numbers"),
        (["plain", "--contexts", "9999999"], ExitCode.USAGE, "Context 9999999 cannot be measured"),
        (["plain", "--contexts", "99999999"], ExitCode.USAGE, "from 1 to 9999999"),
        (["plain", "--rows", "3"], ExitCode.USAGE, "--rows says which passes --passes measures"),
        (["plain", "--passes", "--rows", "1,65"], ExitCode.USAGE, "A pass has 1 to 64 rows, not 65"),
        (["plain", "--passes", "--steps", "3"], ExitCode.USAGE, "--steps is for plain decoding"),
        (["peers", "--mode", "magic"], ExitCode.USAGE, "llama.cpp has no mode 'magic'"),
        (["edit", "--tasks", "/nowhere.jsonl"], ExitCode.USAGE, "Cannot read the tasks"),
        (["replay", "--tasks", "/nowhere.jsonl"], ExitCode.USAGE, "Cannot read the tasks"),
        (["plain", "--isa", "abacus"], ExitCode.USAGE, "'abacus' does not run here"),
        (["peers", "--isa", "abacus"], ExitCode.USAGE, "'abacus' does not run here"),
        (["replay"], ExitCode.USAGE, "--tasks"),
    ],
)
def test_options_that_make_no_sense(
    tiny: str,
    options: list[str],
    code: ExitCode,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("editor_engine.bench.peer_llamacpp.find_spec", lambda name: object())
    assert main(["bench", *options, "--model", tiny]) == code
    out, err = capsys.readouterr()
    assert words in err and out == "" and "Traceback" not in err


def test_a_missing_model_ends_a_json_answer_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "prefill", "--model", "nonsense", "--json"]) == ExitCode.ENGINE
    line = result(capsys.readouterr().out, "prefill")
    assert (line["outcome"], line["exit_code"], line["error"]["code"]) == ("failed", 4, "model")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_says_so(
    tiny: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object) -> None:
        signal.raise_signal(number)

    monkeypatch.setattr("editor_engine.bench.rates.prefill_rates", interrupt)
    assert main(["bench", "prefill", "--model", tiny, "--contexts", "8", "--json"]) == ExitCode.INTERRUPTED
    line = result(capsys.readouterr().out, "prefill")
    assert (line["outcome"], line["exit_code"]) == ("cancelled", 130)


def test_without_llama_cpp_the_command_that_installs_it_is_named(
    tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("editor_engine.bench.peer_llamacpp.find_spec", lambda name: None)
    assert main(["bench", "peers", "--model", tiny]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == "" and "-m pip install xllamacpp` gets it." in err and len(err.splitlines()) == 1


def answers(module: str, job: PeerJob) -> list[PeerReply]:
    rate = {"plain": 10.0, "none": 5.0, "drafted": 20.0}.get(job.mode, 4.0)
    return [PeerReply(900, 0, 100.0, 65, 64 / rate, 0, 0, "same") for _ in job.requests]


def test_peers_from_options_to_ratios(
    tiny: str, tasks: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs: list[PeerJob] = []

    def run(module: str, job: PeerJob) -> list[PeerReply]:
        jobs.append(job)
        return answers(module, job)

    monkeypatch.setattr("editor_engine.bench.peer_llamacpp.find_spec", lambda name: object())
    monkeypatch.setattr(peers.compare, "__defaults__", (run,))
    options = ["--model", tiny, "--threads", "2", "--isa", "scalar", "--repeats", "2", "--tasks", tasks]
    assert main(["bench", "peers", *options, "--mode", "ngram_mod", "--json"]) == ExitCode.OK
    line = result(capsys.readouterr().out, "peers")
    assert line["ratios"]["edit_vs_best_llama_cpp"] == {"median": 4.0, "min": 4.0, "max": 4.0, "runs": 2}
    assert line["ratios"]["plain_vs_llama_cpp"]["median"] == 2.0 and line["best_llama_cpp_mode"] == "none"
    assert [job.mode for job in jobs] == ["plain", "none", "drafted", "ngram_mod"] * 2
    assert {(job.model, job.threads, job.isa) for job in jobs} == {(tiny, 2, "scalar")}
    bare, edit = jobs[0].requests
    assert edit.source == TASK["before"] and "Swap." in edit.messages[-1].content and bare.max_tokens == 65
    assert jobs[0].context % 256 == 0


def test_a_peer_that_fails_is_an_engine_error(
    tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(module: str, job: PeerJob) -> list[PeerReply]:
        raise PeerFailedError("The engine process died.")

    monkeypatch.setattr("editor_engine.bench.peer_llamacpp.find_spec", lambda name: object())
    monkeypatch.setattr(peers.compare, "__defaults__", (run,))
    assert main(["bench", "peers", "--model", tiny]) == ExitCode.ENGINE
    assert capsys.readouterr().err.endswith("redraft: The engine process died.\n")


def test_edit_compares_drafted_and_plain(tiny: str, tasks: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", tiny, "--tasks", tasks, "--threads", "1", "--repeats", "1"]
    assert main(["bench", "edit", *options, "--json"]) == ExitCode.OK
    line = result(capsys.readouterr().out, "edit")
    (turn,) = line["turns"]
    assert (turn["kind"], turn["identical"], line["identical_turns"]) == ("one", True, 1)
    assert turn["on_tok_s"]["runs"] == 1 and line["speed_up"]["median"] > 0
    assert main(["bench", "edit", *options, "--score", "--json"]) == ExitCode.OK
    assert line["mean_logprob"] is None and result(capsys.readouterr().out, "edit")["mean_logprob"] < 0
    assert main(["bench", "edit", *options]) == ExitCode.OK
    assert "same ids      1 of 1 turns" in capsys.readouterr().out


def test_replay_takes_the_tokenizer_of_the_model(tiny: str, tasks: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "replay", "--model", tiny, "--tasks", tasks, "--curve", "flat", "--json"]) == ExitCode.OK
    line = result(capsys.readouterr().out, "replay")
    assert set(line["drafters"]) >= {"redraft", "ngram-mod"} and set(line["drafters"]["redraft"]) == {"flat"}
    assert line["conditions"]["tasks"] == 1 and line["conditions"]["target_tokens"] > 10
    assert main(["bench", "replay", "--model", tiny, "--tasks", tasks]) == ExitCode.OK
    assert "avx2: plain steps/token" in capsys.readouterr().out


def test_ids_of_tasks_are_shown_as_text_and_notes_of_the_load_are_said(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "\x1b[31mtasks.jsonl"
    path.write_text(json.dumps({**TASK, "id": "\x1b]0;pwn\x07\ud800"}))
    monkeypatch.setattr("editor_engine.loading.default_threads", lambda: 1)
    for options in (["replay", "--curve", "avx2"], ["edit", "--repeats", "1", "--threads", "2"]):
        assert main(["bench", *options, "--model", tiny, "--tasks", str(path)]) == ExitCode.OK
        out, err = capsys.readouterr()
        assert r"\x1b]0;pwn\x07\ud800" in out and "\x1b" not in out + err
    assert "note: 2 threads share 1 processor and" in err
    assert main(["bench", "edit", "--threads", "9", "--model", tiny, "--tasks", str(path)]) == ExitCode.USAGE
    assert "9 threads on 1 processor would wait for each other" in capsys.readouterr().err
    path.write_text("{")
    assert main(["bench", "replay", "--model", tiny, "--tasks", str(path)]) == ExitCode.USAGE
    assert r"\x1b[31mtasks.jsonl is damaged" in capsys.readouterr().err


def test_replay_under_the_costs_measured_here(tiny: str, tasks: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Said when there are none, for the conditions asked for; the same to the last digit once there are."""
    options = ["bench", "replay", "--model", tiny, "--tasks", tasks, "--curve", "measured", "--isa", "scalar"]
    here = [*options, "--threads", "1", "--json"]
    assert main(here) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert "Nothing was measured yet for this model with 1 threads and the kernel variant scalar" in err
    assert result(out, "replay")["error"]["code"] == "usage"
    session = ["--model", tiny, "--tasks", tasks, "--threads", "1", "--isa", "scalar", "--repeats", "1"]
    assert main(["bench", "edit", *session]) == ExitCode.OK
    capsys.readouterr()
    figures = []
    for _ in range(2):
        assert main(here) == ExitCode.OK
        line = result(capsys.readouterr().out, "replay")
        figures.append(line["drafters"])
        assert (line["conditions"]["threads"], line["conditions"]["isa"]) == (1, "scalar")
    assert figures[0] == figures[1]
    assert set(figures[0]["redraft"]) == {"measured"}
    assert figures[0]["redraft"]["measured"].keys() == {"geomean", "worst", "worst_task"}
    assert main([*options, "--threads", "2"]) == ExitCode.USAGE


def test_help_of_every_workload_needs_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    for workload in ("prefill", "plain", "peers", "edit", "hf", "pair", "replay", "server", "ui", "watch"):
        assert main(["bench", workload, "--help"]) == ExitCode.OK
        assert "--json" in capsys.readouterr().out


def test_server_over_in_process(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", tiny, "--threads", "1", "--repeats", "2", "--steps", "5"]
    assert main(["bench", "server", *options, "--json"]) == ExitCode.OK
    line = result(capsys.readouterr().out, "server")
    names = {field.name for field in dataclasses.fields(ServerFigures)}
    assert names <= set(line)
    assert all(line[name]["runs"] == 2 for name in names)
    assert line["start_to_ready_s"]["min"] >= line["start_to_listening_s"]["min"] > 0
    assert line["conditions"]["steps"] == 5
    assert main(["bench", "server", *options, "--isa", "none"]) == ExitCode.USAGE
