"""The order of a comparison and the arithmetic of its ratios, on engines that answer from a table."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from editor_engine.bench.peer_llamacpp import MODES, reply_of, require_modes, require_package
from editor_engine.bench.peer_process import PeerFailedError, PeerJob, PeerReply, PeerRequest
from editor_engine.bench.peers import MODULES, OURS, THEIRS, compare, table
from editor_engine.errors import RequestError
from editor_engine.requests import Message

EDIT = PeerRequest((Message("user", "Edit."),), 100, "source")
BARE = PeerRequest((Message("user", "Read."),), 5)
JOB = PeerJob("model.gguf", "", 2, 512, "scalar", (EDIT, EDIT))
REPLY = PeerReply(1000, 0, 50.0, 11, 1.0, 0, 0, "same")


class Engines:
    """Replies by module and mode; `rate(mode, round)` is decode tok/s."""

    def __init__(self, rate: Callable[[str, int], float], digest: Callable[[str], str] = lambda mode: mode) -> None:
        self.jobs: list[tuple[str, PeerJob]] = []
        self._rate = rate
        self._digest = digest

    def run(self, module: str, job: PeerJob) -> list[PeerReply]:
        self.jobs.append((module, job))
        number = sum(1 for _, earlier in self.jobs if earlier.mode == job.mode)
        seconds = 10 / self._rate(job.mode, number)
        return [replace(REPLY, decode_s=seconds, digest=self._digest(job.mode)) for _ in job.requests]


def quiet(_: str) -> None:
    pass


def test_engines_take_turns_and_only_undrafted_ones_read_the_bare_prompt() -> None:
    engines = Engines(lambda mode, number: 1.0)
    compare(JOB, BARE, ("none", "ngram_mod"), 2, quiet, engines.run)
    order = [(MODULES[OURS], "plain"), (MODULES[THEIRS], "none"), (MODULES[OURS], "drafted")]
    order.append((MODULES[THEIRS], "ngram_mod"))
    assert [(module, job.mode) for module, job in engines.jobs] == order * 2
    asked = {job.mode: job.requests for _, job in engines.jobs}
    assert asked["plain"] == asked["none"] == (BARE, EDIT, EDIT)
    assert asked["drafted"] == asked["ngram_mod"] == (EDIT, EDIT)


def test_ratios_are_taken_round_by_round_against_the_best_mode() -> None:
    # The machine is twice as slow in the second round.
    speeds = {"plain": 10.0, "none": 5.0, "drafted": 30.0, "ngram_mod": 6.0, "ngram_cache": 2.0}
    engines = Engines(lambda mode, number: speeds[mode] / number, lambda mode: "same")
    figures = compare(JOB, BARE, ("ngram_mod", "ngram_cache"), 2, quiet, engines.run)
    assert figures.best_mode == "ngram_mod" and figures.same_output is True
    fields = figures.fields()
    medians = {name: ratio and ratio.median for name, ratio in figures.ratios().items()}
    assert medians == pytest.approx(
        {"prefill_vs_llama_cpp": 1, "plain_vs_llama_cpp": 2, "edit_vs_best_llama_cpp": 5, "edit_vs_plain": 3}
    )
    assert figures.edit[OURS, "drafted"].runs == pytest.approx((30.0, 15.0))
    assert fields["ratios"]["edit_vs_plain"]["runs"] == 2  # type: ignore[index]
    assert fields["figures"]["llama_cpp"]["ngram_mod"]["output_tokens"] == [11, 11]  # type: ignore[index]
    assert "edit vs best llama cpp (ngram_mod)" in table(figures)


def test_no_drafts_can_be_the_best_mode() -> None:
    engines = Engines(lambda mode, number: {"none": 9.0, "ngram_mod": 4.0}.get(mode, 1.0))
    assert compare(JOB, None, ("ngram_mod",), 1, quiet, engines.run).best_mode == "none"


def test_other_tokens_with_drafting_are_said() -> None:
    figures = compare(JOB, None, (), 1, quiet, Engines(lambda mode, number: 1.0).run)
    assert figures.same_output is False and table(figures).endswith("NO")
    assert figures.ratios()["prefill_vs_llama_cpp"] is None


def test_without_edits_only_the_bare_prompt_is_compared() -> None:
    figures = compare(replace(JOB, requests=()), BARE, MODES, 3, quiet, Engines(lambda mode, number: 4.0).run)
    assert figures.edit == {} and figures.best_mode is None and figures.same_output is None
    assert figures.plain[OURS].runs == (4.0,) * 3
    assert figures.fields()["ratios"]["edit_vs_plain"] is None  # type: ignore[index]
    with pytest.raises(RequestError, match="nothing to compare"):
        compare(replace(JOB, requests=()), None, MODES, 3, quiet, Engines(lambda mode, number: 4.0).run)


def test_a_reply_without_a_rate_is_a_failure() -> None:
    def silent(module: str, job: PeerJob) -> list[PeerReply]:
        return [replace(REPLY, decode_s=None) for _ in job.requests]

    with pytest.raises(PeerFailedError, match="redraft gave no rate"):
        compare(JOB, BARE, (), 1, quiet, silent)


def test_the_first_token_of_llama_cpp_is_not_counted_as_decoded() -> None:
    timings = {"prompt_n": 30, "prompt_ms": 600.0, "predicted_n": 21, "predicted_ms": 4000.0}
    reply = reply_of("text", {**timings, "draft_n": 8, "draft_n_accepted": 6})
    assert (reply.prefill_tok_s, reply.decode_tok_s) == (50.0, 5.0)
    assert (reply.drafted, reply.accepted) == (8, 6)
    assert reply_of("t", {**timings, "predicted_n": 1}).decode_tok_s is None


def test_what_llama_cpp_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    require_modes(MODES)
    with pytest.raises(RequestError, match="no mode 'magic'; it has none, ngram_simple"):
        require_modes(["none", "magic"])
    monkeypatch.setattr("editor_engine.bench.peer_llamacpp.find_spec", lambda name: None)
    with pytest.raises(RequestError, match="-m pip install xllamacpp` gets it"):
        require_package()
