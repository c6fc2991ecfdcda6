"""Options of a load: one table for command lines, settings and children, and nothing lost on the way."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import COMMANDS, LazyGroup, main
from app.errors import ExitCode
from app.load_flags import load_flags
from app.load_options import LOAD_OPTIONS, Given, LoadOptions, command_words
from app.settings import load_settings
from editor_engine.config import EngineConfig, HfOptions

VALUES: dict[str, st.SearchStrategy[object]] = {
    "model": st.text(min_size=1).filter(lambda text: "\x00" not in text),
    "threads": st.integers(0, 1024),
    "draft_model": st.text(min_size=1).filter(lambda text: "\x00" not in text),
    "draft_rule": st.sampled_from(["same-ids", "rejection"]),
    "context_length": st.integers(1, 1 << 24),
    "max_memory": st.integers(1, 1 << 60),
    "dtype": st.sampled_from(["auto", "float32", "bfloat16", "float16"]),
    "quantise": st.sampled_from(["nf4", "fp4", "int8"]),
    "compute_dtype": st.sampled_from(["auto", "float32", "bfloat16", "float16"]),
    "double_quant": st.booleans(),
    "device": st.sampled_from(["auto", "cpu", "cuda", "cuda:0", "cuda:12"]),
    "gpu_layers": st.integers(0, 1024),
    "attention": st.sampled_from(["auto", "eager", "sdpa", "flash_attention_2"]),
    "remote_code": st.just(True),
}
CLEARED = ("draft_model", "context_length", "max_memory", "quantise", "gpu_layers")
GIVEN = st.fixed_dictionaries(
    {}, optional={name: kind | st.just("none") if name in CLEARED else kind for name, kind in VALUES.items()}
)


def parsed(words: Sequence[str]) -> Given:
    """What a command that has all the options is given."""
    heard: list[Given] = []

    @click.command()
    @load_flags()
    @click.option("--json", "as_json", is_flag=True)
    def command(load: Given, as_json: bool) -> None:
        heard.append(load)

    result = CliRunner().invoke(command, list(words), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return heard[0]


def meant(name: str, value: object) -> object:
    return None if name in CLEARED and value == "none" else value


def test_the_word_none_takes_a_setting_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = LoadOptions("m", 2, 4096, 10**9, "small", hf=HfOptions(quantise="nf4", gpu_layers=3, double_quant=True))
    words = [word for name in CLEARED for word in (f"--{name.replace('_', '-')}", "none")]
    cleared = kept.over(parsed([*words, "--no-double-quant"]))
    assert cleared == LoadOptions("m", 2)
    file = tmp_path / "settings.toml"
    file.write_text('[load]\nquantise = "nf4"\ndraft_model = "small"\n')
    found = load_settings(file, {"REDRAFT_QUANTISE": "none"}).load
    assert (found.hf.quantise, found.draft_model) == (None, "small")
    assert LoadOptions("m").over({"model": "none"}).model == "none"  # which is a name, if a strange one


def test_the_table_has_every_option_of_the_record() -> None:
    names = {option.name for option in LOAD_OPTIONS}
    assert names == {field.name for kind in (LoadOptions, HfOptions) for field in fields(kind)} - {"hf"} == set(VALUES)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(GIVEN)
def test_what_is_given_survives_a_command_line_a_child_and_the_way_to_the_engine(given: dict[str, object]) -> None:
    # A text that begins with a dash is an option to click: `--model=-x` is what a user writes then.
    plain = {name: value for name, value in given.items() if not str(value).startswith("-")}
    assert parsed(command_words(plain)) == plain
    options = LoadOptions().over(given)
    assert all(options.value(name) == meant(name, value) for name, value in given.items())
    assert all(options.value(name) == LoadOptions().value(name) for name in VALUES if name not in given)
    assert LoadOptions.from_json(options.to_json()) == options
    config = options.config(Path("/m"), None)
    assert config.hf == options.hf
    assert (config.threads, config.context_length, config.max_memory, config.draft_rule) == (
        options.threads,
        options.context_length,
        options.max_memory,
        options.draft_rule,
    )


@settings(derandomize=True, deadline=None, max_examples=60)
@given(GIVEN, GIVEN)
def test_two_loads_are_the_same_to_clients_where_they_differ_in_nothing_clients_see(
    one: dict[str, object], other: dict[str, object]
) -> None:
    def config(given: dict[str, object]) -> EngineConfig:
        options = LoadOptions().over(given)
        draft = None if options.draft_model is None else Path("/drafts") / options.draft_model.replace("/", "_")
        return options.config(Path("/m"), draft)

    def seen(config: EngineConfig) -> tuple[object, ...]:
        return config.context_length, config.draft_path, config.draft_rule, config.hf

    first, second = config(one), config(other)
    assert (first.loaded_as == second.loaded_as) == (seen(first) == seen(second))
    assert (first.loaded_as == "") == (seen(first) == seen(EngineConfig(Path("/m"))))
    assert config({"threads": 3, "max_memory": 7}).loaded_as == ""


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["--threads", "1025"], "it must be a whole number from 0 to 1024, not '1025'"),
        (["--max-memory", "6G"], "it must be a size such as 6GB"),
        (["--device", "gpu"], "it must be auto, cpu, cuda or cuda:N"),
        (["--quantise", "nf8"], "it must be one of nf4, fp4, int8, or none"),
        (["--model", ""], "it must be a model id"),
        (["--context-length", "0"], "it must be a whole number of tokens from 1"),
        (["--context-length", "99999999"], "tokens from 1 to 16777216, "),
        (["--gpu-layers", "many"], "it must be a whole number"),
    ],
)
def test_a_value_that_is_none_is_said_with_what_is_wanted(
    words: list[str], wanted: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(click.BadParameter, match=wanted.replace(".", r"\.")):
        parsed(words)
    assert main(["edit", str(file), "-i", "Do.", *words]) == ExitCode.USAGE
    said = capsys.readouterr()
    assert wanted in said.err and said.out == ""


def test_commands_that_load_a_model_have_them_all() -> None:
    group = LazyGroup()
    ui = group.get_command(click.Context(group), "[FILE]")
    commands = {name: group.get_command(click.Context(group), name) for name in COMMANDS}
    for command in (ui, commands["edit"], commands["watch"], commands["serve"]):
        assert command is not None
        flags = {flag for parameter in command.params for flag in parameter.opts}
        assert {option.flag for option in LOAD_OPTIONS} <= flags
    measured = commands["verify"]
    assert measured is not None
    assert "--quantise" in {flag for parameter in measured.params for flag in parameter.opts}


def test_consent_to_run_code_is_no_setting() -> None:
    (code,) = [option for option in LOAD_OPTIONS if not option.is_setting]
    assert code.name == "remote_code"


def test_options_for_a_child_name_every_field() -> None:
    assert json.loads(LoadOptions(model="m").to_json()).keys() == {field.name for field in fields(LoadOptions)}
