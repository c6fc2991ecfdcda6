"""Settings: defaults, file, environment, what wins, and that a typing mistake never passes silently."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli import main
from app.errors import ExitCode, SettingsError
from app.load_options import LoadOptions
from app.paths import settings_file
from app.settings import ENGINE_KEY, Settings, engine_key, explain_settings, load_settings, settings_template
from editor_engine.config import HfOptions
from tests.support.headless_edit import CHANGED, assert_sentence
from tests.support.scripted_client import ScriptedClient, fenced

EVERY_KEY = """
model = "qwen2.5-coder-1.5b"
threads = 3

[load]
draft_model = "qwen2.5-coder-0.5b"
draft_rule = "rejection"
context_length = 16384
max_memory = "6GB"
dtype = "bfloat16"
quantise = "nf4"
compute_dtype = "float32"
double_quant = true
device = "cuda:1"
gpu_layers = 20
attention = "eager"

[engine]
url = "http://localhost:8000/v1"
model = "served"

[models]
from_index = true

[edit]
strict = true
draft = false

[ui]
theme = "light"
colours = 256
reduced_motion = true
mouse = false
"""


def settings(tmp_path: Path, text: str, **environment: str) -> Settings:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return load_settings(path, environment)


def refusal(tmp_path: Path, text: str, **environment: str) -> str:
    with pytest.raises(SettingsError) as caught:
        settings(tmp_path, text, **environment)
    sentence = str(caught.value)
    assert_sentence(sentence)
    return sentence


def test_nothing_set_gives_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none.toml", {"HOME": "/", "PATH": ""}) == Settings()


def test_the_file_sets_every_key(tmp_path: Path) -> None:
    url, model = "http://localhost:8000/v1", "served"
    hf = HfOptions("bfloat16", "nf4", "float32", True, "cuda:1", 20, "eager")
    load = LoadOptions("qwen2.5-coder-1.5b", 3, 16384, 6 * 10**9, "qwen2.5-coder-0.5b", "rejection", hf)
    expected = Settings(load, url, model, True, True, False, "light", "256", True, False)
    assert settings(tmp_path, EVERY_KEY) == expected


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        EVERY_KEY,
        REDRAFT_MODEL="/models/other.gguf",
        REDRAFT_THREADS="0",
        REDRAFT_DRAFT_MODEL="7",
        REDRAFT_DRAFT_RULE="same-ids",
        REDRAFT_CONTEXT_LENGTH="2048",
        REDRAFT_MAX_MEMORY="1000000",
        REDRAFT_DTYPE="float16",
        REDRAFT_QUANTISE="int8",
        REDRAFT_COMPUTE_DTYPE="auto",
        REDRAFT_DOUBLE_QUANT="0",
        REDRAFT_DEVICE="cpu",
        REDRAFT_GPU_LAYERS="0",
        REDRAFT_ATTENTION="sdpa",
        REDRAFT_ENGINE_URL="unix:/run/serve.sock",
        REDRAFT_ENGINE_MODEL="other",
        REDRAFT_FROM_INDEX="no",
        REDRAFT_STRICT="False",
        REDRAFT_DRAFT="1",
        REDRAFT_THEME="dark",
        REDRAFT_COLOURS="16",
        REDRAFT_REDUCED_MOTION="0",
        REDRAFT_MOUSE="true",
    )
    engine = ("unix:/run/serve.sock", "other")
    hf = HfOptions("float16", "int8", "auto", False, "cpu", 0, "sdpa")
    load = LoadOptions("/models/other.gguf", 0, 2048, 1000000, "7", "same-ids", hf)
    assert found == Settings(load, *engine, False, False, True, "dark", "16", False, True)


def test_a_key_is_not_a_setting(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, '[engine]\nkey = "sk-1"\n')
    assert ENGINE_KEY in sentence and "sk-1" not in sentence


def test_every_value_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("threads = 3\n[ui]\ntheme = 'light'\n")
    found = {setting.key: setting for setting in explain_settings(path, {"REDRAFT_THEME": "dark"})}
    assert (found["threads"].value, found["threads"].origin) == (3, str(path))
    assert (found["ui.theme"].value, found["ui.theme"].origin) == ("dark", "REDRAFT_THEME")
    assert (found["edit.draft"].value, found["edit.draft"].origin) == (True, "default")
    assert found["ui.mouse"].variable == "REDRAFT_MOUSE" and "true" in found["ui.mouse"].wanted
    assert load_settings(path, {"REDRAFT_THEME": "dark"}).theme == "dark"


def test_the_template_sets_nothing_and_names_every_key(tmp_path: Path) -> None:
    template = settings_template()
    assert settings(tmp_path, template) == Settings()
    bare = re.sub(r"(?m)^# (\w+ = )", r"\1", template).replace('= ""', '= "m"')
    hf = HfOptions(quantise="nf4", gpu_layers=20)
    load = LoadOptions(model="m", draft_model="m", context_length=16384, max_memory=6 * 10**9, hf=hf)
    expected = Settings(load, engine_url="m", engine_model="m", keys={"retry": "ctrl+r f5"})
    assert settings(tmp_path, bare) == expected
    assert all(setting.variable in template for setting in explain_settings(tmp_path / "none", {}))


def test_the_settings_file_is_where_it_should_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "redraft").mkdir()
    (tmp_path / "redraft" / "settings.toml").write_text("threads = 7\n")
    assert settings_file() == tmp_path / "redraft" / "settings.toml"
    assert load_settings().load.threads == 7


@pytest.mark.parametrize(
    "text",
    [
        "modle = 'x'",
        "[edit]\nstict = true",
        "[edits]\nstrict = true",
        "edit = true",
        "[model]\nname = 'x'",
        "[a.b]\nc=1",
        "[load]\nremote_code = true",
    ],
)
def test_an_unknown_key_is_named(tmp_path: Path, text: str) -> None:
    sentence = refusal(tmp_path, text)
    assert "unknown key" in sentence and "edit.strict" in sentence


@pytest.mark.parametrize("text", ["[edits]", "[edit.more]", "[models]\n[extra]"])
def test_an_unknown_table_is_an_error_even_when_empty(tmp_path: Path, text: str) -> None:
    assert "unknown key" in refusal(tmp_path, text)


def test_an_empty_table_we_know_is_none(tmp_path: Path) -> None:
    assert settings(tmp_path, "[edit]\n[models]\n") == Settings()


@pytest.mark.parametrize(
    "text",
    [
        "model = ''",
        "model = 3",
        "threads = -1",
        "threads = 1025",
        "threads = true",
        "threads = 'many'",
        "threads = 1.5",
        "[edit]\nstrict = 1",
        "[edit]\ndraft = 'maybe'",
        "model = ['a']",
        "[ui]\ntheme = 'pink'",
        "[ui]\ncolours = 17",
        "[ui]\ncolours = true",
        "[ui]\nmouse = 'on'",
        "[load]\nmax_memory = '6G'",
        "[load]\nmax_memory = 0",
        "[load]\nmax_memory = true",
        "[load]\ncontext_length = 0",
        "[load]\ndevice = 'cuda:'",
        "[load]\ndevice = 'gpu'",
        "[load]\nquantise = 'nf8'",
        "[load]\ndouble_quant = 1",
        "[load]\ndraft_model = ''",
    ],
)
def test_a_wrong_value_is_named_with_what_is_wanted(tmp_path: Path, text: str) -> None:
    assert "must be" in refusal(tmp_path, text)


@pytest.mark.parametrize("value", ["", "-1", "1e3", "²", "99999999999"])
def test_a_wrong_variable_is_named(tmp_path: Path, value: str) -> None:
    assert "REDRAFT_THREADS must be" in refusal(tmp_path, "", REDRAFT_THREADS=value)


def test_an_unknown_variable_is_named_with_those_there_are(tmp_path: Path) -> None:
    sentence = refusal(tmp_path, "", REDRAFT_MODLE="x")
    assert "REDRAFT_MODLE" in sentence and "REDRAFT_MODEL" in sentence


@pytest.mark.parametrize("data", [b"threads = ", b"\xff\xfe", b"a = 1\na = 2", b"threads = \x00"])
def test_a_file_that_is_no_toml(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(data)
    with pytest.raises(SettingsError, match="not valid TOML") as caught:
        load_settings(path, {})
    assert_sentence(str(caught.value))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path, {})


def test_an_edit_with_wrong_settings_is_exit_2(
    file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REDRAFT_SPEED", "fast")
    assert main(["edit", str(file), "-i", "Do."]) == ExitCode.USAGE
    (line,) = capfd.readouterr().err.splitlines()
    assert "REDRAFT_SPEED" in line
    assert main(["edit", str(file), "-i", "Do.", "--json"]) == ExitCode.USAGE
    (only,) = capfd.readouterr().out.splitlines()
    assert json.loads(only)["error"]["code"] == "settings"


def test_options_win_over_settings(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[LoadOptions] = []
    clients: list[ScriptedClient] = []

    def own_client(options: LoadOptions) -> ScriptedClient:
        asked.append(options)
        clients.append(ScriptedClient(fenced(CHANGED)))
        return clients[-1]

    monkeypatch.setattr("app.clients.in_process.own_client", own_client)
    monkeypatch.setenv("REDRAFT_MODEL", "from-environment")
    monkeypatch.setenv("REDRAFT_THREADS", "5")
    monkeypatch.setenv("REDRAFT_QUANTISE", "nf4")
    monkeypatch.setenv("REDRAFT_DRAFT", "no")
    edit = ["edit", str(file), "-i", "Do."]
    assert main(edit) == 0
    assert main([*edit, "--model", "from-option", "--threads", "0"]) == 0
    monkeypatch.delenv("REDRAFT_DRAFT")
    assert main(edit) == 0
    assert main([*edit, "--no-draft"]) == 0
    assert main([*edit, "--quantise", "int8", "--max-memory", "2 GB"]) == 0
    by_settings = LoadOptions("from-environment", 5, hf=HfOptions(quantise="nf4"))
    by_option = LoadOptions("from-environment", 5, max_memory=2 * 10**9, hf=HfOptions(quantise="int8"))
    assert asked == [by_settings, replace(by_settings, model="from-option", threads=0), *[by_settings] * 2, by_option]
    assert [client.requests[0].draft for client in clients] == [False, False, True, False, True]


def test_strict_from_settings_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = CHANGED.replace("return 0.0\n", "return (0.0\n")
    monkeypatch.setattr("app.clients.in_process.own_client", lambda *_: ScriptedClient(fenced(broken)))
    assert main(["edit", str(file), "-i", "Do."]) == ExitCode.OK
    monkeypatch.setenv("REDRAFT_STRICT", "yes")
    assert main(["edit", str(file), "-i", "Do."]) == ExitCode.REFUSED


def test_the_key_of_an_engine_is_a_variable_and_no_setting(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert load_settings(missing, {ENGINE_KEY: "secret"}) == load_settings(missing, {})
    assert not any("secret" in str(setting) for setting in explain_settings(missing, {ENGINE_KEY: "secret"}))


@pytest.mark.parametrize("key", ["a\nb", "a ", " a", "a b", "\u043a\u043b\u044e\u0447", "a\x01b", "a\x7f", "\udcff"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENGINE_KEY, key)
    with pytest.raises(SettingsError, match=ENGINE_KEY) as caught:
        engine_key()
    assert key.strip() == "a" or key not in str(caught.value)


def test_a_key_is_taken_as_it_is_and_an_empty_one_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENGINE_KEY, raising=False)
    assert engine_key() is None
    monkeypatch.setenv(ENGINE_KEY, "")
    assert engine_key() is None
    monkeypatch.setenv(ENGINE_KEY, "sk-+/=~!")
    assert engine_key() == "sk-+/=~!"
