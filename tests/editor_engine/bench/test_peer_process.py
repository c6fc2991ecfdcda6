"""Engines in processes of their own: ours over a tiny model, noisy ones, dying ones, and llama.cpp on real weights."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from editor_engine.bench.peer_process import PeerFailedError, PeerJob, PeerReply, PeerRequest, parse_job, run_job
from editor_engine.bench.peers import MODULES, OURS, THEIRS
from editor_engine.kernels import variants
from editor_engine.requests import Message
from tests.support.tiny_gguf import write_tiny

SOURCE = "def add(a, b):\n    return a + b\n" * 4
REQUEST = PeerRequest((Message("system", "You edit."), Message("user", f"{SOURCE}\nKeep it.")), 24, SOURCE)
JOB = PeerJob("no.gguf", "plain", 1, 512, "scalar", (REQUEST, REQUEST))
ROOT = Path(__file__).parents[3]

NOISY = """
import os, sys
from editor_engine.bench.peer_process import PeerReply, serve

def answer(job):
    print("a library talks")
    os.write(1, b"and so does its C code\\n")
    for request in job.requests:
        {body}
        yield PeerReply(len(request.messages), 0, None, request.max_tokens, None, 0, 0, job.mode)

sys.exit(serve(answer))
"""


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules a peer process can run."""
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    return tmp_path


def test_a_job_survives_its_json() -> None:
    assert parse_job(json.loads(json.dumps(asdict(JOB)))) == JOB


def test_what_a_library_prints_is_not_taken_for_a_reply(peers: Path) -> None:
    (peers / "noisy_peer.py").write_text(NOISY.format(body="pass"))
    replies = run_job("noisy_peer", JOB)
    assert [replace(reply, peak_rss_bytes=None) for reply in replies] == [
        PeerReply(2, 0, None, 24, None, 0, 0, "plain")
    ] * 2
    assert all(reply.peak_rss_bytes and reply.peak_rss_bytes > 2**20 for reply in replies)


HANGING = """
import os, signal, sys
from editor_engine.bench.peer_process import serve

def answer(job):
    os.write(int(job.mode), f"{os.getpid()}\\n".encode())
    signal.pause()
    yield

sys.exit(serve(answer))
"""
ASKING = """
import os, sys
from dataclasses import replace
from editor_engine.bench.peer_process import PeerJob, run_job
os.set_inheritable(int(sys.argv[1]), True)
import subprocess, functools
subprocess.Popen = functools.partial(subprocess.Popen, pass_fds=[int(sys.argv[1])])
run_job("hanging_peer", PeerJob("no.gguf", sys.argv[1], 1, 512, "scalar", ()))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_engine_ends_with_its_parent_however_that_ends(peers: Path, number: signal.Signals) -> None:
    (peers / "hanging_peer.py").write_text(HANGING)
    read, write = os.pipe()
    parent = subprocess.Popen([sys.executable, "-c", ASKING, str(write)], pass_fds=[write])
    os.close(write)
    with open(read, encoding="utf-8") as pipe:
        engine = int(pipe.readline())  # it works, and would for ever
        os.kill(engine, 0)
        parent.send_signal(number)
        assert parent.wait(60) == -number
        assert pipe.read() == ""  # both ends that could write are closed: the engine has ended


def test_an_engine_that_hangs_is_ended_and_said_to(peers: Path) -> None:
    (peers / "hanging_peer.py").write_text(HANGING)
    with pytest.raises(PeerFailedError, match=r"hanging_peer \(1\) gave no answer within 0.05 s and was ended\."):
        run_job("hanging_peer", replace(JOB, mode="1"), time_out_s=0.05)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("os.kill(os.getpid(), 9)", "noisy_peer (plain) failed: "),
        ("raise RuntimeError('the peer is broken')", "failed: RuntimeError: the peer is broken"),
        ("return", "noisy_peer (plain) failed: "),
    ],
)
def test_a_process_that_dies_or_falls_silent_is_one_sentence(peers: Path, body: str, words: str) -> None:
    (peers / "noisy_peer.py").write_text(NOISY.format(body=body))
    with pytest.raises(PeerFailedError) as failure:
        run_job("noisy_peer", JOB)
    assert words in str(failure.value) and "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("job", "words"),
    [(JOB, "no.gguf"), (PeerJob("no.gguf", "fast", 1, 512, "scalar", ()), "no mode 'fast'; it has plain and drafted.")],
)
def test_our_engine_says_why_it_cannot(job: PeerJob, words: str) -> None:
    with pytest.raises(PeerFailedError) as failure:
        run_job(MODULES[OURS], job)
    assert words in str(failure.value) and "Traceback" not in str(failure.value)


def test_our_engine_gives_the_same_tokens_drafted_and_plain(tmp_path: Path) -> None:
    model = str(write_tiny(tmp_path / "tiny.gguf", seed=3))
    plain = run_job(MODULES[OURS], PeerJob(model, "plain", 1, 512, "scalar", (REQUEST,)))
    drafted = run_job(MODULES[OURS], PeerJob(model, "drafted", 1, 512, "scalar", (REQUEST, REQUEST)))
    assert [reply.digest for reply in drafted] == [plain[0].digest] * 2
    assert plain[0].output_tokens > 1 and plain[0].decode_tok_s and plain[0].drafted == 0
    # The second time the prompt is in the cache, and only its last token is computed again.
    assert drafted[1].cached_tokens == plain[0].prompt_tokens - 1 > 50


@pytest.mark.model
def test_llama_cpp_reads_the_very_prompt_that_ours_reads(smollm2_path: Path) -> None:
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed; `pip install xllamacpp` gets it")
    request = PeerRequest((Message("user", f"{SOURCE}\nRepeat this file."),), 6)
    ours = run_job(MODULES[OURS], PeerJob(str(smollm2_path), "plain", 1, 512, variants()[0], (request,)))[0]
    theirs = [
        run_job(MODULES[THEIRS], PeerJob(str(smollm2_path), mode, 1, 512, variants()[0], (request,)))[0]
        for mode in ("none", "ngram_simple")
    ]
    assert ours.prompt_tokens == theirs[0].prompt_tokens > 50
    assert all(reply.output_tokens == 6 and reply.decode_tok_s for reply in (ours, *theirs))
