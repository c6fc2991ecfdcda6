"""The log: facts, and nothing of what was said, not even when something breaks."""

import logging
import stat
from pathlib import Path

import pytest

from editor_engine.errors import EngineError
from editor_engine.server import event_log
from editor_engine.server.event_log import EventLog, UvicornLines
from editor_engine.server.options import ServeOptions
from tests.support.served_engine import EchoEngine, chat, live_server

SECRETS = ("source-text-of-the-user", "predicted-text", "prefilled-text", "key-of-the-user", "path-of-a-request")
SOURCE, PREDICTED, PREFILLED, KEY, PATH = SECRETS


def test_a_line_has_its_facts(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "serve.log")
    log.say("completion", outcome="stop", waited_s=0.12345, output=None, prompt=7)
    log.close()
    (line,) = (tmp_path / "serve.log").read_text().splitlines()
    assert line.endswith(" completion outcome=stop waited_s=0.123 prompt=7")


def test_the_file_is_the_users_alone(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "serve.log")
    log.close()
    assert stat.S_IMODE((tmp_path / "serve.log").stat().st_mode) == 0o600


def test_a_full_file_is_put_aside_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "MAX_BYTES", 200)
    log = EventLog(tmp_path / "serve.log")
    for number in range(100):
        log.say("completion", prompt=number)
    log.close()
    assert len(list(tmp_path.iterdir())) == 1 + event_log.KEPT
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())
    assert "prompt=99" in (tmp_path / "serve.log").read_text()


def test_a_log_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "serve.log").symlink_to("elsewhere")
    with pytest.raises(EngineError, match=r"serve\.log cannot be written"):
        EventLog(tmp_path / "serve.log")


def test_a_full_disk_costs_lines_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    log = EventLog(Path("/dev/full"))
    log.say("completion", prompt=1)
    log.close()
    assert capfd.readouterr() == ("", "")


def test_a_fault_is_its_kind_and_place_without_its_words(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "serve.log")
    lines = UvicornLines(log)
    try:
        raise ValueError(SOURCE)
    except ValueError as error:
        log.fault(error)
        lines.emit(logging.LogRecord("uvicorn.error", logging.ERROR, "h.py", 3, SOURCE, (), (type(error), error, None)))
    lines.emit(logging.LogRecord("uvicorn.error", logging.WARNING, "h.py", 3, SOURCE, (), None))
    log.fault(ValueError(SOURCE))
    log.close()
    text = (tmp_path / "serve.log").read_text()
    assert "fault kind=ValueError at=test_event_log.py:" in text
    assert "http level=warning at=h:3" in text
    assert SOURCE not in text


def test_nothing_of_requests_and_replies_is_in_the_log(tmp_path: Path) -> None:
    engine = EchoEngine()
    body = chat(SOURCE, prediction={"type": "content", "content": PREDICTED}, redraft={"prefill": PREFILLED})
    options = ServeOptions(port=0, key=KEY)
    with live_server(engine, options, log=tmp_path / "serve.log") as server:
        for key in (KEY, f"wrong{KEY}"):
            with server.client(headers={"authorization": f"Bearer {key}"}) as client:
                client.post("/v1/chat/completions", json=body)
                client.post("/v1/chat/completions", json={**body, SOURCE: 1})
                client.post("/v1/chat/completions", json={**body, "model": SOURCE})
                client.post("/v1/chat/completions", content=SOURCE, headers={"content-type": "application/json"})
                client.get(f"/{PATH}?{PATH}")
                engine.failure = RuntimeError(SOURCE)
                client.post("/v1/chat/completions", json=body)
                engine.failure = None
    text = (tmp_path / "serve.log").read_text()
    assert "completion outcome=stop" in text
    assert "completion outcome=internal" in text
    assert "fault kind=RuntimeError" in text
    assert not [secret for secret in SECRETS if secret in text]
