"""Sources of some length and what a model makes of them, as hypothesis strategies. Knows nothing of what is done with
them."""

from hypothesis import strategies as st

from app.editing.document import Document, open_bytes

_REPEATED = ["", "", "}", "    return value", "```", "    pass", "日本 é"]


@st.composite
def long_documents(draw: st.DrawFn) -> Document:
    """A document of 8 to 60 lines, most of them unlike any other, in some encoding and with some newlines."""
    count = draw(st.integers(8, 60))
    plain = st.integers(0, 3).flatmap(
        lambda kind: st.sampled_from(_REPEATED) if kind == 0 else st.integers(0, 99).map("line {}".format)
    )
    lines = [draw(plain) for _ in range(count)]
    endings = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"], ["\r"]]))
    text = "".join(line + draw(st.sampled_from(endings)) for line in lines)
    if draw(st.booleans()):
        text = text.rstrip("\r\n") or "x"
    encoding = draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030"]))
    return open_bytes(text.encode(encoding), "made up", encoding)


@st.composite
def long_rewrites(draw: st.DrawFn, lines: tuple[str, ...]) -> list[str]:
    """The lines with some stretches left out, replaced, doubled, moved; perhaps not to their end."""
    new = list(lines)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(new)))
        end = min(len(new), at + draw(st.integers(0, 9)))
        match draw(st.integers(0, 5)):
            case 0:
                del new[at:end]
            case 1:
                new[at:end] = [f"new {number}" for number in range(draw(st.integers(1, 9)))]
            case 2:
                new[at:at] = new[at:end]
            case 3:
                stretch = new[at:end]
                del new[at:end]
                place = draw(st.integers(0, len(new)))
                new[place:place] = stretch
            case 4:
                new[at:at] = [draw(st.sampled_from(_REPEATED))]
            case 5:
                del new[end + draw(st.integers(0, 20)) :]
    return new
