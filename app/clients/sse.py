"""Server-sent events: bytes as they arrive -> the data of each event.

Knows the line format (comments, CR, LF and CRLF, fields without a value, several data lines) and nothing of what the
data means. Invariant: the events do not depend on where the bytes were cut, inside a character or a line end or not.
"""

import codecs
import re

MOST_EVENT_CHARS = 16 << 20
"""Longer than any event of an honest server: the longest has the token ids of a whole reply."""

_LINE_END = re.compile(r"\r\n|\n|\r")


class SseError(Exception):
    """What came is no stream of events; the text says why."""


class SseParser:
    """Fed bytes, gives the data of whole events."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._open: list[str] = []  # pieces of the line that has no end yet; joined once, however many there are
        self._open_chars = 0
        self._data: list[str] = []
        self._chars = 0
        self._begun = False

    def feed(self, data: bytes) -> list[str]:
        """The events that are whole now. Raises SseError for an event without end."""
        return self._take(self._decoder.decode(data))

    def finish(self) -> list[str]:
        """The stream has ended; an event that was not closed by a blank line counts, too, as many servers end so."""
        return self._take(self._decoder.decode(b"", final=True) + "\n\n")

    def _take(self, text: str) -> list[str]:
        if not self._begun and text:
            self._begun = True
            text = text.removeprefix("\ufeff")
        events: list[str] = []
        if not text:
            return events
        complete = bool(_LINE_END.search(text)) or (self._open and self._open[-1].endswith("\r"))
        self._open.append(text)
        self._open_chars += len(text)
        if complete:
            self._take_lines("".join(self._open), events)
        if self._chars + self._open_chars > MOST_EVENT_CHARS:
            raise SseError("an event without end")
        return events

    def _take_lines(self, text: str, events: list[str]) -> None:
        """Add the events that the whole lines of a text close; keep what is behind the last line end."""
        at = 0
        for end in _LINE_END.finditer(text):
            if end[0] == "\r" and end.end() == len(text):
                break  # it may be the first half of CRLF
            event = self._take_line(text[at : end.start()])
            at = end.end()
            if event is not None:
                events.append(event)
        self._open = [text[at:]] if at < len(text) else []
        self._open_chars = len(text) - at

    def _take_line(self, line: str) -> str | None:
        """The event that this line closes."""
        if not line:
            event = "\n".join(self._data) if self._data else None
            self._data, self._chars = [], 0
            return event
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
            self._chars += len(value)
        return None  # comments (an empty name) and fields of no use to us: event, id, retry
