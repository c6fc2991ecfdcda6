"""The figures of a run: added up event by event, unknown where nothing was said."""

from app.editing.figures import RECENT_PASSES, FigureKeeper, LineAcceptance, RunFigures
from editor_engine.events import DRAFT_MODEL, Pass, Prefill, Provenance, Span, Started, Text


def test_nothing_said_is_nothing_known() -> None:
    figures = RunFigures()
    assert (figures.tok_s, figures.reading_tok_s, figures.acceptance, figures.copied_share) == (None,) * 4


def test_events_add_up() -> None:
    now = [10.0]
    keeper = FigureKeeper(lambda: now[0])
    keeper.take(Started(100, 40, 50))
    assert (keeper.figures().prefill_done, keeper.figures().prefill_total) == (0, 60)
    keeper.take(Prefill(32, 60))
    keeper.take(Pass(9, 8, 8, 9, "cursor", 3, 250.0))
    keeper.take(Pass(9, 8, 2, 3, "cursor", 7, 125.0))
    keeper.take(Pass(1, 0, 0, 1, None, None, 125.0))
    keeper.take(Text("abcd", (Span(3, Provenance.COPIED, 3), Span(1, Provenance.GENERATED, None))))
    now[0] = 12.5
    figures = keeper.figures()
    assert (figures.prefill_done, figures.prefill_total) == (32, 60)
    assert (figures.tokens, figures.passes, figures.drafted, figures.accepted) == (13, 3, 16, 10)
    assert figures.emitted == (9, 3, 1)
    assert figures.tok_s == 26.0
    assert figures.acceptance == 10 / 16
    assert figures.copied_share == 3 / 4
    assert figures.elapsed_s == 2.5
    assert figures.reading_tok_s == 32 / 2.5
    assert figures.source_line == 7


def test_the_map_has_where_drafts_held_and_where_they_failed() -> None:
    keeper = FigureKeeper(lambda: 0.0)
    keeper.take(Pass(5, 4, 4, 5, "cursor", 1, 1.0))
    keeper.take(Pass(5, 4, 1, 2, "cursor", 2, 1.0))
    keeper.take(Pass(5, 4, 1, 2, "ngram", None, 1.0))
    keeper.take(
        Text(
            "one\ntwo",
            (Span(4, Provenance.COPIED, 1), Span(2, Provenance.SUBSTITUTED, 2), Span(1, Provenance.AGREED, 2)),
        )
    )
    assert keeper.lines() == {1: LineAcceptance(4, 0), 2: LineAcceptance(2, 1)}


def test_an_engine_that_says_no_provenance_and_no_cache() -> None:
    keeper = FigureKeeper(lambda: 0.0)
    keeper.take(Started(100, None, 50))
    keeper.take(Text("abc", (Span(3, None, None),)))
    assert keeper.figures().prefill_total == 100
    assert keeper.figures().copied_share is None
    assert keeper.lines() == {}


def test_only_the_newest_passes_are_kept_and_a_snapshot_stays() -> None:
    keeper = FigureKeeper(lambda: 0.0)
    keeper.take(Pass(1, 0, 0, 1, None, None, 1.0))
    early = keeper.figures()
    for count in range(RECENT_PASSES):
        keeper.take(Pass(1, 0, 0, 2 + count, None, None, 1.0))
    assert early.emitted == (1,)
    assert keeper.figures().emitted == tuple(range(2, RECENT_PASSES + 2))
    assert keeper.figures().passes == RECENT_PASSES + 1


def test_a_draft_model_is_counted_apart_and_its_time_is_part_of_decoding() -> None:
    keeper = FigureKeeper(lambda: 0.0)
    keeper.take(Pass(5, 4, 4, 5, "cursor", 1, 100.0))
    assert keeper.figures().by_model is None
    keeper.take(Pass(4, 3, 2, 3, DRAFT_MODEL, None, 100.0, 150.0))
    keeper.take(Pass(3, 2, 0, 1, DRAFT_MODEL, None, 100.0, 50.0))
    assert keeper.figures().by_model == (5, 2)
    assert keeper.figures().tok_s == 9 / 0.5
