"""What a draft model did, for programs and for people; nothing that a terminal would obey."""

from dataclasses import replace

from app.json_events import plain_data
from app.stats_words import stats_fields, stats_lines
from editor_engine.events import DraftModelStats, Provenance, Stats

DRAFT = DraftModelStats(
    name="small",
    passes=40,
    read_tokens=700,
    read_s=3.25,
    seconds=4.5,
    by_position=((30, 24), (20, 10)),
    gain=1.25,
    decision="The draft model small\x1b[2J drafted where it paid: 1.25 of plain decoding there.",
    weights_bytes=1 << 29,
    cache_bytes=3 << 20,
)
STATS = Stats(700, 0, 90, None, None, None, 9.0, 50, 60, 34, draft_model=DRAFT)
BARE = Stats(700, 0, 0, None, None, None, 0.5, 0, 0, 0)


def test_programs_get_every_figure_of_a_draft_model() -> None:
    found = plain_data(stats_fields(STATS))
    assert isinstance(found, dict)
    assert found["draft_model"] == {
        "name": "small",
        "passes": 40,
        "read_tokens": 700,
        "read_s": 3.25,
        "seconds": 4.5,
        "by_position": [{"verified": 30, "accepted": 24}, {"verified": 20, "accepted": 10}],
        "gain": 1.25,
        "decision": DRAFT.decision,
        "weights_bytes": 1 << 29,
        "cache_bytes": 3 << 20,
    }
    assert stats_fields(BARE)["draft_model"] is None


def test_what_an_engine_does_not_say_is_null_and_what_did_not_happen_is_0() -> None:
    silent = stats_fields(Stats(700, None, 90, None, None, None, 9.0, None, None, None))
    assert (silent["by_drafter"], silent["by_provenance"], silent["policy_tokens"]) == (None, None, None)
    half = stats_fields(Stats(700, None, 90, None, None, None, 9.0, None, 60, 34))  # llama-server's timings
    assert (half["drafted"], half["by_drafter"], half["by_provenance"]) == (60, None, None)
    bare = stats_fields(BARE)
    assert (bare["by_drafter"], bare["by_provenance"], bare["policy_tokens"]) == ({}, {}, 0)
    told = stats_fields(
        replace(
            BARE, output_tokens=3, by_provenance={Provenance.COPIED: 2, Provenance.POLICY: 1}, drafted=2, accepted=1
        )
    )
    assert plain_data(told["by_provenance"]) == {"copied": 2, "policy": 1}
    assert (told["policy_tokens"], told["by_drafter"]) == (1, None)


def test_people_hear_what_was_decided_and_all_of_it_when_they_ask() -> None:
    decided = r"       The draft model small\x1b[2J drafted where it paid: 1.25 of plain decoding there."
    brief, full = stats_lines(STATS, verbose=False), stats_lines(STATS, verbose=True)
    assert decided in brief and decided in full
    assert not any("MB, cache" in line for line in brief)
    assert "       draft model: 40 passes in 4.5 s, of that 3.2 s to read 700 tokens" in full
    assert "       accepted by place in its drafts, the ones before it accepted: 80% 50%" in full
    assert "       draft model's memory: weights 537 MB, cache 4 MB" in full


def test_a_draft_model_that_was_not_asked_has_no_figures_but_its_memory() -> None:
    silent = replace(DRAFT, passes=0, by_position=(), gain=None, decision="Not asked.")
    lines = stats_lines(replace(STATS, draft_model=silent), verbose=True)
    assert "       Not asked." in lines and any("memory" in line for line in lines)
    assert not any("passes in" in line or "by place" in line for line in lines)


def test_near_ties_are_told_where_there_can_be_any() -> None:
    assert "       2.5% of the positions were near ties and decided again in plain form" in stats_lines(
        replace(BARE, rerun_share=0.025), verbose=False
    )
    assert stats_fields(replace(BARE, rerun_share=0.0))["rerun_share"] == 0.0
