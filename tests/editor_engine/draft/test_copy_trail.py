"""A broken copy is offered a little while, one place further with each token."""

from editor_engine.draft.copy_trail import CopyTrail

EARLIER = [1, 2, 3, 4, 5, 6, 7, 8, 9]


def emit(trail: CopyTrail, tokens: list[int], *new: int) -> None:
    for token in new:
        tokens.append(token)
        trail.advance(tokens)


def test_resumes_behind_the_differing_token_and_is_forgotten() -> None:
    trail, tokens = CopyTrail(), list(EARLIER)
    trail.start(0)
    emit(trail, tokens, 1, 2, 70)
    assert trail.resumed(tokens) == (1, 3)
    emit(trail, tokens, 71)
    assert trail.resumed(tokens) == (2, 4)
    emit(trail, tokens, 72, 73, 74, 75, 76)
    assert trail.resumed(tokens) is None


def test_a_copy_of_one_token_means_nothing() -> None:
    trail, tokens = CopyTrail(), list(EARLIER)
    trail.start(0)
    emit(trail, tokens, 1, 70)
    assert trail.resumed(tokens) is None


def test_a_copy_may_run_into_its_own_output() -> None:
    trail, tokens = CopyTrail(), [1, 2]
    trail.start(0)
    emit(trail, tokens, *[1, 2] * 20, 5)
    assert trail.resumed(tokens) == (1, 41)
