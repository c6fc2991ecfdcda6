"""A rename learned under one tokenisation is drafted under all others, and costs nothing while it is not confirmed."""

import re
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from editor_engine.decode.verify import common_prefix, usable_draft
from editor_engine.draft.chain import ChainDrafter, Parts
from editor_engine.draft.drafter import Draft, Origin
from editor_engine.draft.pass_cost import PassCost
from editor_engine.draft.renames import Renames, Words
from editor_engine.errors import RequestError
from editor_engine.events import Provenance


class ToyWords:
    """A word is one token together with the sign or space before it; known long names are two, bytes are the rest."""

    def __init__(self) -> None:
        self._ids: dict[bytes, int] = {bytes([byte]): byte for byte in range(256)}
        self._spelling = {number: piece for piece, number in self._ids.items()}
        self.encoded: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.encoded.append(text)
        return [self._id(piece) for piece in self._pieces(text.encode())]

    def token_bytes(self, token_id: int) -> bytes:
        return self._spelling[token_id]

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        for match in re.finditer(rb"[ .(]?[a-z_]+|\s*\n|.", data, re.S):
            piece = match.group()
            yield from (piece[:-4], b"_all") if piece.endswith(b"_all") else (piece,)

    def _id(self, piece: bytes) -> int:
        number = self._ids.setdefault(piece, len(self._ids))
        self._spelling[number] = piece
        return number


class Broken(ToyWords):
    """Wrong in one of several ways, from the first question about a rewritten line on."""

    def __init__(self, fault: Callable[[list[int]], list[int]]) -> None:
        super().__init__()
        self._fault = fault
        self.hostile = False

    def encode(self, text: str) -> list[int]:
        ids = super().encode(text)
        return self._fault(ids) if self.hostile else ids


def run(words: Words | None, prompt: Sequence[int], source: Sequence[int], target: Sequence[int]) -> list[Origin]:
    """Origins of a whole reply, one a token."""
    return replayed(words, prompt, source, target)[0]


def replayed(
    words: Words | None,
    prompt: Sequence[int],
    source: Sequence[int],
    target: Sequence[int],
    parts: Parts | None = None,
    cost: Callable[[], PassCost] = PassCost.flat,
) -> tuple[list[Origin], int]:
    """Origins and passes of a whole reply."""
    drafter = ChainDrafter(prompt, source, (), cost=cost(), words=words, parts=parts)
    output: list[int] = []
    origins: list[Origin] = []
    passes = 0
    while len(output) < len(target):
        room = len(target) - len(output) - 1
        proposed = drafter.draft(room)
        tokens = usable_draft(proposed.tokens, room, 100_000, ())
        accepted = common_prefix(tokens, target[len(output) :])
        emitted = target[len(output) : len(output) + accepted + 1]
        origins += drafter.observe(Draft(tokens, proposed.drafter), accepted, emitted, None)
        output += emitted
        passes += 1
    assert output == list(target) and len(origins) == len(target)
    return origins, passes


FORMS = ("x = find(a)\n", "self.find(b)\n", "return find\n", "call(find, c)\n", "if not_find.find: d\n", "{find}\n")


FILLERS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota")


def sources() -> str:
    """The forms, further apart than a draft is long."""
    rows = [f"{word} {other} = value\n" for word in FILLERS for other in FILLERS]
    return "".join("".join(rows[at * 13 : at * 13 + 13]) + form for at, form in enumerate(FORMS))


def renamed(text: str, new: str) -> str:
    return re.sub(r"\bfind\b", new, text)


def provenance_of(words: ToyWords, target: Sequence[int], origins: Sequence[Origin], name: str) -> list[Provenance]:
    """Provenance of each token that ends with `name`, in order."""
    pairs = zip(target, origins, strict=True)
    return [origin.provenance for token, origin in pairs if words.token_bytes(token).endswith(name.encode())]


@pytest.mark.parametrize(
    ("instruction", "new", "last", "own"),
    [
        ("please", "search", "search", 2),
        ("find becomes search", "search", "search", 1),
        ("please", "find_all", "_all", 2),
    ],
)
def test_a_rename_is_drafted_under_tokenisations_not_seen_before(
    instruction: str, new: str, last: str, own: int
) -> None:
    """` find`, `.find`, `(find`, `find` are four tokens; the model writes the first `own` sites itself."""
    words = ToyWords()
    source, prompt = words.encode(sources()), words.encode(instruction)
    target = words.encode(renamed(sources(), new))
    origins, passes = replayed(words, [*source, *prompt], source, target)
    seen = provenance_of(words, target, origins, last)
    assert len(seen) == len(FORMS)
    assert Provenance.SUBSTITUTED not in seen[:own]
    assert seen[own:] == [Provenance.SUBSTITUTED] * (len(FORMS) - own)
    assert passes < replayed(None, [*source, *prompt], source, target)[1]


def test_positions_are_right_behind_a_substitution() -> None:
    words = ToyWords()
    source = words.encode(sources())
    target = words.encode(renamed(sources(), "find_all"))
    origins = run(words, source, source, target)
    indexed = [(token, origin.source_index) for token, origin in zip(target, origins, strict=True)]
    assert all(source[index] == token for token, index in indexed if index is not None)
    places = [index for _, index in indexed if index is not None]
    assert places == sorted(places) and places[-1] == len(source) - 1


def test_a_rename_that_was_begun_is_finished_and_the_cursor_goes_on_behind_it() -> None:
    """Whether the model wrote the first token of the new name itself or a short draft ended there."""
    words = ToyWords()
    source, prompt = words.encode(sources()), words.encode("find becomes search_all")
    target = words.encode(renamed(sources(), "search_all"))
    drafter = ChainDrafter([*source, *prompt], source, (), cost=PassCost.flat(), words=words)
    at = len(words.encode(sources()[: sources().index("return find")])) + 2  # two names before it have one token more
    for token in target[:at]:
        drafter.observe(Draft(), 0, [token], None)
    assert words.token_bytes(target[at + 1]) == b" search" and words.token_bytes(target[at + 2]) == b"_all"
    begun = drafter.draft(2)
    assert begun.tokens == tuple(target[at : at + 2])
    drafter.observe(begun, 2, begun.tokens, None)
    rest = drafter.draft(20)
    assert rest.tokens == tuple(target[at + 2 : at + 22])
    origins = drafter.observe(rest, 3, rest.tokens[:3], None)
    assert [origin.provenance for origin in origins] == [Provenance.SUBSTITUTED, Provenance.COPIED, Provenance.COPIED]
    assert [origin.source_index for origin in origins] == [None, at, at + 1]


def test_parts_of_words_are_left_alone() -> None:
    words = ToyWords()
    text = "find one\n" * 2 + "not_find two\nfind_er three\nfindé four\n(find) five\n"
    names = learned(words, text, [("find", "search"), ("find", "search")])
    found = [rewrite for at in range(len(words.encode(text))) if (rewrite := names.at(at))]
    spelt = [b"".join(map(words.token_bytes, rewrite.emitted)) for rewrite in found]
    assert spelt == [b"search", b"search", b"(search"]


def learned(words: Words, text: str, sightings: Sequence[tuple[str, str]], context: str = "") -> Renames:
    """Renames that saw each pair once, at the start of `text`."""
    source = words.encode(text)
    names = Renames(words, words.encode(context), source)
    for old, new in sightings:
        end = len(words.encode(old))
        assert source[:end] == words.encode(old)
        names.learn([], 0, end, words.encode(new), 4)
    return names


def test_one_sighting_counts_where_the_prompt_has_both_names() -> None:
    text = "find one two\nfind three\n"
    at = len(ToyWords().encode("find one two\n"))
    assert learned(ToyWords(), text, [("find", "search")]).at(at) is None
    assert learned(ToyWords(), text, [("find", "search")], "find the rest").at(at) is None
    assert learned(ToyWords(), text, [("find", "search")], "find is now `search`.").at(at) is not None
    assert learned(ToyWords(), text, [("find", "search")] * 2).at(at) is not None
    assert learned(ToyWords(), text, [("find", "search"), ("find", "look")]).at(at) is None


def test_a_name_that_is_kept_counts_against_its_rename() -> None:
    words = ToyWords()
    text = "find one two\nfind three\nfind four\n"
    names = learned(words, text, [("find", "search")] * 2)
    line = len(words.encode("find one two\n"))
    assert names.at(line) is not None
    for _ in range(2):
        names.kept(line, 9)  # the name alone may still go on as find_all
        assert names.at(line) is not None
        names.kept(line + 1, 1)  # the token before was not the source's
        assert names.at(line) is not None
    for _ in range(2):
        names.kept(line + 1, 9)
    assert names.at(line) is None


def unspellable(ids: list[int]) -> list[int]:
    raise RequestError("This model has no token for a byte.")


FAULTS: dict[str, Callable[[list[int]], list[int]]] = {
    "nothing": lambda ids: [],
    "reversed": lambda ids: ids[::-1],
    "one byte": lambda ids: [65] * len(ids),
    "doubled": lambda ids: ids * 50,
    "refused": unspellable,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_encoders_bring_no_rename_and_no_harm(fault: str) -> None:
    words = Broken(FAULTS[fault])
    source = words.encode(sources())
    target = words.encode(renamed(sources(), "search"))
    words.hostile = True
    assert replayed(words, source, source, target) == replayed(None, source, source, target)


class Misspelling(ToyWords):
    """Spells every token alike, or none."""

    def __init__(self, spelling: bytes | None) -> None:
        super().__init__()
        self._alike = spelling

    def token_bytes(self, token_id: int) -> bytes:
        if self._alike is None:
            raise RequestError(f"There is no token {token_id}.")
        return self._alike


@pytest.mark.parametrize("spelling", [None, b"", b"\xff", b"find", b"\n", b" a"])
def test_wrong_spellings_change_no_output(spelling: bytes | None) -> None:
    words = Misspelling(spelling)
    source = words.encode(sources())
    target = words.encode(renamed(sources(), "search"))
    origins = run(words, source, source, target)
    pairs = zip(target, origins, strict=True)
    assert all(source[origin.source_index] == token for token, origin in pairs if origin.source_index is not None)


TEXT = st.text(st.sampled_from("ab_ .(\né漢"), max_size=60)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(TEXT, TEXT, TEXT, st.sampled_from([PassCost.flat, PassCost.avx2]))
def test_any_text_twice_the_same(before: str, instruction: str, after: str, cost: Callable[[], PassCost]) -> None:
    """Wide characters are several tokens here, so lines and names are cut inside of them."""
    words = ToyWords()
    source, prompt, target = words.encode(before * 3), words.encode(instruction), words.encode(after * 3)
    first, second = (replayed(words, [*source, *prompt], source, target, cost=cost) for _ in range(2))
    assert first == second
    for token, origin in zip(target, first[0], strict=True):
        assert origin.source_index is None or source[origin.source_index] == token


def test_lines_are_encoded_once_and_in_bounded_pieces() -> None:
    words = ToyWords()
    rows = [f"find {word} {other} = value" for word in FILLERS for other in FILLERS]
    text = "\n".join(rows * 2) + "\n" + ";".join(rows * 9)
    source = words.encode(text)
    target = words.encode(renamed(text, "search"))
    words.encoded.clear()
    origins = run(words, source, source, target)
    assert sum(origin.provenance is Provenance.SUBSTITUTED for origin in origins) > 800
    assert max(map(len, words.encoded)) < 64 * 8
    assert sum(map(len, words.encoded)) < 2 * len(renamed(text, "search"))


def test_memory_of_names_is_bounded() -> None:
    words = ToyWords()
    names = learned(words, "x y z\n", [("x", "y")])
    for letter in "abcdefghij":
        for other in "abcdefghij":
            names._sighted(f"{letter}{other}".encode(), b"new")
    assert len(names._known) == 64


def test_without_substitutions_there_are_no_renames() -> None:
    words = ToyWords()
    source = words.encode(sources())
    target = words.encode(renamed(sources(), "search"))
    off = Parts(substitutions=False)
    assert replayed(words, source, source, target, off) == replayed(None, source, source, target, off)
