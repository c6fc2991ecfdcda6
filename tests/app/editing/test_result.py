"""Model text to file bytes: unchanged lines keep their bytes, new ones take their neighbour's line end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.document import Document, open_bytes
from app.editing.result import make_result, result_lines
from app.errors import ExitCode, ReplyEmptyError, UnencodableError
from tests.support.byte_forms import documents, rewrites


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        (b"a\nb\n", "a\nx\nb\n", b"a\nx\nb\n"),
        (b"a\r\nb\r\n", "a\nx\nb\n", b"a\r\nx\r\nb\r\n"),
        (b"a\rb\r", "a\nx\nb\n", b"a\rx\rb\r"),
        # Mixed: the line before decides, at the top the line after.
        (b"a\r\nb\nc\n", "a\nx\nb\ny\nc\n", b"a\r\nx\r\nb\ny\nc\n"),
        (b"a\r\nb\n", "x\na\nb\n", b"x\r\na\r\nb\n"),
        (b"a\r\nb\nc\r\n", "a\nB\nc\n", b"a\r\nB\r\nc\r\n"),
        # The final newline stays as the source has it, whatever the reply does.
        (b"a\nb", "a\nb\n", b"a\nb"),
        (b"a\nb", "a\nb\nc\n", b"a\nb\nc"),
        (b"a\nb", "a\nb\n\n\n", b"a\nb"),
        (b"a\nb", "a\n", b"a"),
        (b"a\nb\n", "a\nb\nc", b"a\nb\nc\n"),
        (b"a", "a\nb\n", b"a\nb"),
        (b"a\r\nb", "b\na\n", b"b\r\na"),
        # A mark stays at the top and nowhere else.
        (b"\xef\xbb\xbfa\nb\n", "x\na\nb\n", b"\xef\xbb\xbfx\na\nb\n"),
        (b"\xef\xbb\xbfa\nb\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"a\n", "\ufeffa\nb\n", b"a\nb\n"),
        ("\ufeffa\nb\n".encode("utf-16-le"), "a\nx\nb\n", "\ufeffa\nx\nb\n".encode("utf-16-le")),
        # Data that looks like a line end.
        (b"a\x0cb\nc\n", "a\x0cb\nC\n", b"a\x0cb\nC\n"),
        ("a\u2028b\nc\n".encode(), "a\u2028b\nC\n", "a\u2028b\nC\n".encode()),
        (b"a\rb\nc\n", "a\rb\nC\n", b"a\rb\nC\n"),
        # A reply with CRLF means newlines; where the source has CR data at line ends, it is data.
        (b"a\nb\n", "a\r\nB\r\n", b"a\nB\n"),
        (b"a\r\r\nb\n", "a\r\nB\n", b"a\r\r\nB\r\n"),
    ],
)
def test_bytes_of_a_result(source: bytes, text: str, expected: bytes) -> None:
    assert make_result(open_bytes(source, "x"), text).data == expected


@settings(derandomize=True, deadline=None, max_examples=300)
@given(data=st.data(), document=documents())
def test_result_says_what_the_reply_said(data: st.DataObject, document: Document) -> None:
    text = data.draw(rewrites(document))
    lines = result_lines(document, text)
    result = make_result(document, text)
    assert [line.text for line in result.lines] == lines
    assert result.data.startswith(document.codec.bom)
    reopened = document.codec.decode(result.data[len(document.codec.bom) :])
    assert reopened == "".join(line.text + line.ending for line in result.lines)
    assert bool(result.lines[-1].ending) == document.final_newline
    for match in result.matches:
        for step in range(match.length):
            assert document.source_lines[match.old + step].raw == result.lines[match.new + step].raw


@settings(derandomize=True, deadline=None)
@given(document=documents())
def test_same_text_is_the_same_file(document: Document) -> None:
    assert make_result(document, document.text).data == document.data
    assert make_result(document, document.text.rstrip("\n") + "\n").data == document.data or document.text.endswith(
        "\n\n"
    )


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_reply_is_refused(text: str) -> None:
    with pytest.raises(ReplyEmptyError):
        make_result(open_bytes(b"a", "x"), text)


@pytest.mark.parametrize(
    ("encoding", "words"), [("latin-1", r"Line 2 .*'€' \(U\+20AC\).*iso8859-1"), ("ascii", r"Line 2 .*'€'")]
)
def test_a_character_the_encoding_lacks_is_named(encoding: str, words: str) -> None:
    with pytest.raises(UnencodableError, match=words) as caught:
        make_result(open_bytes(b"a\nb\n", "x", encoding), "a\n5 €\n")
    assert caught.value.exit_code is ExitCode.REFUSED


def test_nul_and_lone_surrogates_are_refused() -> None:
    with pytest.raises(UnencodableError, match="NUL"):
        make_result(open_bytes(b"a\n", "x"), "a\0\n")
    with pytest.raises(UnencodableError, match=r"U\+D800"):
        make_result(open_bytes(b"a\n", "x"), "\ud800\n")


def test_unchanged_lines_need_no_encoding_again() -> None:
    document = open_bytes("é\nb\n".encode("cp1252"), "x", "cp1252")
    assert make_result(document, "é\nc\n").data == "é\nc\n".encode("cp1252")
