"""Renames as text: which identifier became which, and the source tokens as they read with that applied.

A name is spelt by other tokens after a dot than after a space, so what `substitutions.py` learns of one spelling says
nothing of the next. Here whole identifiers are compared as bytes, and the source is tokenised again, line by line, with
the new name in place. Knows ids only through the `Words` it is given. Invariants: a span handed out is cut where both
tokenisations have a token border outside every renamed name, so all text around the names is the source's; a line is
encoded at most once for each change of what is confirmed; at most `_RENAMES` names are kept.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from editor_engine.errors import RequestError

_WORD = re.compile(rb"[A-Za-z0-9_\x80-\xff]+")
"""A run of identifier bytes. Every byte of a character beyond ASCII counts, so no character is ever cut."""
_LONGEST = 64
"""Bytes of a name."""
_RENAMES = 64
_CONFIRMED = 2
_LINE = 64
"""Tokens encoded at once; a longer line is cut."""
_SITE = 48
"""Tokens of an edit site that are compared word by word."""
AROUND = 4
"""Equal tokens taken along on both sides of a site, to see whole names."""


class Words(Protocol):
    """How ids are spelt; pure functions of one vocabulary. Both may raise RequestError."""

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes that a token stands for."""

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text, special tokens neither read nor added."""


@dataclass
class Rename:
    """An identifier and what the output had in its place."""

    old: bytes
    new: bytes
    asked: bool
    """The prompt outside the file has both names."""
    right: int = 1
    """Sightings, and drafts that came true."""
    wrong: int = 0
    """Times the name came and was kept."""

    @property
    def usable(self) -> bool:
        """Seen twice, or once where the prompt speaks of it, and right more often than wrong."""
        return self.right >= (1 if self.asked else _CONFIRMED) and self.right > self.wrong


@dataclass(frozen=True)
class Rewrite:
    """A source span as it reads after renaming."""

    source: tuple[int, ...]
    emitted: tuple[int, ...]
    renames: tuple[Rename, ...]
    """Those applied in it, at least one."""

    @property
    def right(self) -> int:
        """How often its names were seen; the least of them."""
        return min(rename.right for rename in self.renames)

    def confirm(self) -> None:
        """It was drafted and came true."""
        for rename in self.renames:
            rename.right += 1


class Renames:
    """What was learned in one reply about the names of one source."""

    def __init__(self, words: Words, context: Sequence[int], source: Sequence[int]) -> None:
        """`context`: the prompt without the source; a negative id in it separates parts."""
        self._words = words
        self._context = context
        self._asked: frozenset[bytes] | None = None
        self._source = source
        spelt = [self._spelling(token) for token in source]
        self._data = b"".join(spelt)
        self._at = [0, *accumulate(map(len, spelt))]  # byte where each token starts, then the end
        self._lines = [0]
        for index, piece in enumerate(spelt, 1):
            if (b"\n" in piece or index - self._lines[-1] >= _LINE) and index < len(source):
                self._lines.append(index)
        self._known: dict[bytes, Rename] = {}
        self._usable: frozenset[tuple[bytes, bytes]] = frozenset()
        self._rewritten: dict[int, dict[int, Rewrite]] = {}
        self._replaced_to = 0

    def at(self, position: int) -> Rewrite | None:
        """The rewritten span that starts at a source position."""
        if not self._usable:
            return None
        line = bisect_right(self._lines, position) - 1
        known = self._rewritten.get(line)
        if known is None:
            known = self._rewritten[line] = dict(self._rewrite(line))
        return known.get(position)

    def learn(self, before: Sequence[int], start: int, end: int, after: Sequence[int], equal: int) -> None:
        """An edit site closed: source[start:end] became `after`.

        `before` is the output up to the site, at most its last AROUND tokens; `equal` counts the source tokens from
        `end` that followed unchanged.
        """
        if end - start > _SITE or len(after) > _SITE:
            return
        left = 0
        while left < min(AROUND, start, len(before)) and before[-1 - left] == self._source[start - 1 - left]:
            left += 1
        right = self._source[end : end + min(AROUND, equal)]
        old = self._pieces([*self._source[start - left : end], *right])
        new = self._pieces([*self._source[start - left : start], *after, *right])
        if len(old) != len(new) or old[::2] != new[::2]:
            return
        for index in range(1, len(old), 2):
            cut = (index == 1 and not old[0] and start > left) or (index == len(old) - 2 and not old[-1])
            if not cut and old[index] != new[index]:
                self._sighted(old[index], new[index])
        self._refresh()

    def kept(self, position: int, streak: int) -> None:
        """The output has the source token at `position`, the last of `streak`: a name that ended here was kept."""
        if not self._known:
            return
        low, high = self._at[position], self._at[position + 1]
        reach = max(0, low - _LONGEST)
        for word in _WORD.finditer(self._data, reach, high):
            # The byte after the name must be in this token: before that it may still go on differently.
            if not low <= word.end() < high or (word.start() == reach and reach > 0):
                continue
            rename = self._known.get(word.group())
            first = bisect_right(self._at, word.start()) - 1
            if rename is not None and first >= self._replaced_to and position - first < streak:
                rename.wrong += 1
                self._refresh()

    def replaced(self, position: int) -> None:
        """What comes right before `position` of the source was emitted in another form."""
        self._replaced_to = position

    def resumed(self) -> None:
        """The output follows the source again at a place of its own."""
        self._replaced_to = 0

    def _sighted(self, old: bytes, new: bytes) -> None:
        if max(len(old), len(new)) > _LONGEST or old[:1].isdigit() or new[:1].isdigit():
            return
        known = self._known.get(old)
        if known is not None and known.new == new:
            known.right += 1
            return
        if known is not None:
            known.wrong += 1
            if known.wrong < known.right:
                return
        elif len(self._known) >= _RENAMES:
            del self._known[next(iter(self._known))]
        if self._asked is None:
            text = b"".join(self._spelling(token) if token >= 0 else b"\n" for token in self._context)
            self._asked = frozenset(_WORD.findall(text))
        self._known[old] = Rename(old, new, old in self._asked and new in self._asked)

    def _refresh(self) -> None:
        """Forget what was rewritten if other names are confirmed now."""
        usable = frozenset((known.old, known.new) for known in self._known.values() if known.usable)
        if usable != self._usable:
            self._usable = usable
            self._rewritten.clear()

    def _rewrite(self, line: int) -> Iterator[tuple[int, Rewrite]]:
        """Spans of one line that read otherwise, by the source position where they start."""
        first = self._lines[line]
        last = self._lines[line + 1] if line + 1 < len(self._lines) else len(self._source)
        begin = self._at[first]
        data = self._data[begin : self._at[last]]
        names = list(self._names(begin, self._at[last]))
        if not names:
            return
        text, done = b"", 0
        for start, end, rename in names:
            text += data[done:start] + rename.new
            done = end
        ids = self._encode(text + data[done:])
        ends = {0: 0} | {end: count for count, end in enumerate(accumulate(len(self._spelling(i)) for i in ids), 1)}
        low, low_new, shift, passed = first, 0, 0, 0
        for high in range(first + 1, last + 1):
            byte = self._at[high] - begin
            held: list[Rename] = []
            moved, index = shift, passed
            while index < len(names) and names[index][1] <= byte:
                held.append(names[index][2])
                moved += len(held[-1].new) - len(held[-1].old)
                index += 1
            inside = index < len(names) and names[index][0] < byte
            high_new = None if inside else ends.get(byte + moved)
            if high_new is None:
                continue
            source, emitted = tuple(self._source[low:high]), tuple(ids[low_new:high_new])
            if held and emitted and source != emitted:
                yield low, Rewrite(source, emitted, tuple(held))
            low, low_new, shift, passed = high, high_new, moved, index

    def _names(self, begin: int, end: int) -> Iterator[tuple[int, int, Rename]]:
        """Whole names in bytes [begin, end) to be renamed, with places counted from `begin`."""
        for word in _WORD.finditer(self._data, begin, end):
            rename = self._known.get(word.group())
            cut_left = word.start() == begin > 0 and _WORD.match(self._data, begin - 1)
            cut_right = word.end() == end and _WORD.match(self._data, end)
            if rename is not None and rename.usable and not cut_left and not cut_right:
                yield word.start() - begin, word.end() - begin, rename

    def _encode(self, data: bytes) -> list[int]:
        """Ids of a line; none where it is no text on its own or its tokens do not spell it: no draft then."""
        try:
            ids = list(self._words.encode(data.decode("utf-8")))
        except (UnicodeDecodeError, RequestError):
            return []
        return ids if b"".join(map(self._spelling, ids)) == data else []

    def _pieces(self, tokens: Sequence[int]) -> list[bytes]:
        """What lies around and between words at even places, words at odd ones."""
        text = b"".join(map(self._spelling, tokens))
        return re.split(rb"(" + _WORD.pattern + rb")", text)

    def _spelling(self, token: int) -> bytes:
        try:
            return self._words.token_bytes(token)
        except RequestError:  # an id without a spelling takes part in no name
            return b""
