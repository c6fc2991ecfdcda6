"""Files of every byte form, as hypothesis strategies. Knows nothing of what is done with them."""

from hypothesis import strategies as st

from app.editing.document import Document, open_bytes

PIECES = [
    "",
    "a",
    "b",
    "\tif x:",
    "    pass",
    "```",
    "x\x0cy",
    "u\u2028v",
    "n\x85m",
    "\x0b",
    "é",
    "日本",
    "e\u0301 ❤\ufe0f 👍🏽",
    "}",
    "\x1b[31m",
]
LINES = st.sampled_from(PIECES)
ENDINGS = st.sampled_from([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"]])


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A document with at least one line: newlines of every style, marks, encodings, with or without a final newline."""
    endings = draw(ENDINGS)
    lines = draw(st.lists(LINES, min_size=1, max_size=14))
    text = "".join(line + draw(st.sampled_from(endings)) for line in lines)
    if "\n" in endings and draw(st.booleans()):
        text = "lone\rreturn\n" + text
    if draw(st.booleans()):
        text = text.rstrip("\r\n") or "x"
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"]))
    return open_bytes(text.encode(encoding), "made up", encoding)


@st.composite
def rewrites(draw: st.DrawFn, document: Document) -> str:
    """What a model might answer: lines kept, dropped, replaced, added, moved; never without any line."""
    out: list[str] = []
    for line in document.lines:
        match draw(st.integers(0, 9)):
            case 0:
                pass
            case 1:
                out.append(draw(LINES))
            case 2:
                out += [line, draw(LINES)]
            case 3:
                out.insert(0, line)
            case _:
                out.append(line)
    return "\n".join([*out, "end"] if not any(out) else out) + draw(st.sampled_from(["", "\n"]))
