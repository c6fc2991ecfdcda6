"""The error family: every class has a code of its own and an exit code of the table."""

from collections.abc import Iterator

from app.errors import AppError, ExitCode


def family(base: type[AppError]) -> Iterator[type[AppError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from family(kind)


def test_codes_are_unique_and_stable_words() -> None:
    # a kind that only one module tells apart may go by its parent's code
    named = [kind for kind in family(AppError) if kind.__module__ == AppError.__module__ or "code" in vars(kind)]
    codes = [kind.code for kind in named]
    assert len(codes) == len(set(codes)) > 20
    assert all(code.isidentifier() and code.islower() for code in codes)


def test_every_error_ends_with_a_code_of_the_table_and_never_with_success() -> None:
    assert all(kind.exit_code in set(ExitCode) - {ExitCode.OK} for kind in family(AppError))


def test_the_table() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "REFUSED": 1,
        "USAGE": 2,
        "FILE": 3,
        "ENGINE": 4,
        "UNCHANGED": 5,
        "CONFLICT": 6,
        "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
    }
