"""Verification: a hash that depends on the tokens alone, hostile drafters that change none, faults that are found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from editor_engine.bench.identity import CaseFigures, IdentityCase, IdentityFigures, Paired, check_identity, table
from editor_engine.bench.identity_drafters import before_a_model, hostile_drafters, own_drafters
from editor_engine.bench.loading import BenchModel, load_parts
from editor_engine.bench.measure import Difference
from editor_engine.config import EngineConfig
from editor_engine.errors import RequestError
from editor_engine.kernels import variants
from editor_engine.models.native.model import NativeModel
from editor_engine.requests import CompletionRequest, Message
from tests.support.tiny_gguf import TinyShape, tiny_source

SOURCE = "def add(a, b):\n    return a + b\n"
EDIT = IdentityCase("edit", CompletionRequest((Message("user", f"{SOURCE}Keep it."),), 24, source=SOURCE))
CHAT = IdentityCase("chat", CompletionRequest((Message("user", "Hello."),), 12))
DRAWN = IdentityCase("drawn", replace(CHAT.request, temperature=0.8, seed=7))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_source(shape=TinyShape(context=512), seed=4).write(tmp_path_factory.mktemp("tiny") / "tiny.gguf")


def loaded(path: Path, threads: int = 1, isa: str | None = None) -> BenchModel:
    return load_parts(EngineConfig(path, threads=threads, context_length=512, isa=isa))


def checked(parts: BenchModel, cases: Sequence[IdentityCase], hostile: bool = True) -> IdentityFigures:
    info = parts.model.info
    drafters = dict(own_drafters(info.isa, parts.tokenizer)) | (hostile_drafters(info.vocab_size) if hostile else {})
    return check_identity(parts.model, parts.tokenizer, parts.template, cases, drafters, lambda words: None)


def test_no_drafter_changes_a_token_and_the_truth_is_accepted(tiny: Path) -> None:
    figures = checked(loaded(tiny), [EDIT, CHAT, DRAWN])
    assert (figures.equal, figures.first_difference) == (3, None)
    assert [len(case.differences) for case in figures.cases] == [7] * 3
    assert all(case.accepted > len(case.ids) and case.drafted > case.accepted for case in figures.cases)


def test_the_hash_is_the_same_for_every_thread_count_and_variant(tiny: Path) -> None:
    cases = [EDIT, CHAT]
    hashes = {
        checked(loaded(tiny, threads, isa), cases, hostile=False).token_hash
        for threads in (1, 2, 3)
        for isa in variants()
    }
    assert len(hashes) == 1


@pytest.mark.model
def test_the_hash_of_real_weights_is_the_same_for_every_thread_count_and_variant(smollm2_path: Path) -> None:
    source = "total = 1\ncount = 2\n"
    repeat = CompletionRequest((Message("user", f"Repeat:\n{source}"),), 8, source=source)
    cases = [IdentityCase("repeat", repeat), replace(CHAT, request=replace(CHAT.request, max_tokens=4))]
    settings = [(1, isa) for isa in variants()] + [(2, variants()[0])]
    found = [checked(loaded(smollm2_path, threads, isa), cases, hostile=False) for threads, isa in settings]
    assert len({figures.token_hash for figures in found}) == 1
    assert all(figures.equal == 2 for figures in found)


def test_a_pass_that_depends_on_its_rows_is_found(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = NativeModel.forward

    def faulty(self: NativeModel, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        choices = forward(self, tokens, head_rows=head_rows)
        return [choices[0] ^ 1, *choices[1:]] if head_rows == 5 else choices

    monkeypatch.setattr(NativeModel, "forward", faulty)
    figures = checked(loaded(tiny), [EDIT])
    found = figures.first_difference
    assert figures.equal == 0 and found is not None and found["case"] == "edit"
    drafter, position = str(found["drafter"]), found["position"]
    assert figures.cases[0].differences[drafter] is not None
    assert f"NO, {drafter} at {position}" in table(figures)


def paired(target: Path, draft: Path) -> IdentityFigures:
    """With no other drafter than the draft model's."""
    parts = load_parts(EngineConfig(target, threads=1, context_length=512, draft_path=draft))
    assert parts.pair is not None
    ways = Paired(parts.pair, before_a_model(parts.model.info.isa, parts.tokenizer))
    cases = [EDIT, CHAT, DRAWN]
    return check_identity(parts.model, parts.tokenizer, parts.template, cases, {}, lambda words: None, ways)


def test_a_draft_model_changes_no_token_and_is_counted_apart(tiny: Path) -> None:
    figures = paired(tiny, tiny)
    assert (figures.equal, figures.first_difference) == (3, None)
    assert all(list(case.differences) == ["draft model", "draft model last"] for case in figures.cases)
    drafted, accepted = figures.by_model
    assert drafted >= accepted > 0
    assert figures.fields()["draft_model"] == {"name": "Tiny qwen2", "drafted": drafted, "accepted": accepted}
    assert f"draft model  Tiny qwen2: {accepted} of {drafted} tokens accepted" in table(figures)
    alone = checked(loaded(tiny), [EDIT, CHAT, DRAWN], hostile=False)
    assert alone.token_hash == figures.token_hash and alone.fields()["draft_model"] is None


def test_a_fault_that_only_a_draft_model_brings_to_light_is_found(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = NativeModel.forward

    def faulty(self: NativeModel, tokens: Sequence[int], *, head_rows: int) -> list[int]:
        choices = forward(self, tokens, head_rows=head_rows)
        return [choices[0] ^ 1, *choices[1:]] if head_rows > 1 else choices

    monkeypatch.setattr(NativeModel, "forward", faulty)
    found = paired(tiny, tiny).first_difference
    assert found is not None and found["drafter"] == "draft model"


def figures_of(ids: tuple[int, ...], *, greedy: bool = True, contract: int = 1, model: str = "m") -> IdentityFigures:
    return IdentityFigures((CaseFigures("one", greedy, ids, {"drafted": None}, 3, 2),), model, contract)


def test_the_hash_covers_tokens_contract_and_model_but_nothing_drawn() -> None:
    hashes = [
        figures_of((1, 2)).token_hash,
        figures_of((1, 3)).token_hash,
        figures_of((12,)).token_hash,
        figures_of((1, 2), contract=2).token_hash,
        figures_of((1, 2), model="n").token_hash,
        figures_of((1, 2), greedy=False).token_hash,
    ]
    assert len(set(hashes)) == len(hashes)
    assert figures_of((1,), greedy=False).token_hash == figures_of((2,), greedy=False).token_hash


def test_the_first_difference_names_case_drafter_and_place() -> None:
    same = CaseFigures("one", True, (1,), {"drafted": None}, 1, 1)
    other = CaseFigures("two", True, (1, 2), {"drafted": None, "noise": Difference(1, 2, None)}, 1, 0)
    fields = IdentityFigures((same, other), "m", 1).fields()
    assert (fields["cases"], fields["equal"]) == (2, 1)
    assert fields["first_difference"] == {
        "case": "two",
        "drafter": "noise",
        "position": 1,
        "plain": 2,
        "drafted": None,
    }


def test_nothing_to_verify_is_said(tiny: Path) -> None:
    with pytest.raises(RequestError, match="no case"):
        checked(loaded(tiny), [])
