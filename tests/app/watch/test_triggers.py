"""Triggers in comments of every style, and only there; taking them out leaves the rest as it was."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.editing.language import _TABLE, Language, detect_language, language_named
from app.watch.comments import find_comments
from app.watch.triggers import find_triggers, instruction_of, may_have_triggers

CASES = [
    # name, text, (line, instruction, place) of each, what is left
    (
        "a.py",
        "#!/usr/bin/env python\n# redraft: use pathlib\n#   and drop os\n# other\ns = '# redraft: no'\n"
        'y = 1  # redraft: rename y\n"""\n# redraft: no\n"""\n',
        [(2, "use pathlib and drop os", "# other"), (6, "rename y", "y = 1")],
        '#!/usr/bin/env python\n# other\ns = \'# redraft: no\'\ny = 1\n"""\n# redraft: no\n"""\n',
    ),
    ("a.py", "x = f'{1} # redraft: no'\n", [], None),
    ("a.py", "# Redraft: a program\n# redraft:\n#redraft: tight\nx = 1\n", [(3, "tight", "x = 1")], "#~"),
    ("a.py", "def f():\n    # redraft: last\n", [(2, "last", "")], "def f():\n"),
    ("a.py", "if True\n    # redraft: mend the syntax\nx = (\n", [(2, "mend the syntax", "x = (")], "if True\nx = (\n"),
    ("a.py", "é = 'ü'  # redraft: ASCII, bitte — ja\n", [(1, "ASCII, bitte — ja", "é = 'ü'")], "é = 'ü'\n"),
    (
        "a.ts",
        "const a = 1; // redraft: one\nconst b = `// redraft: no`;\n/**\n * redraft: many\n * lines\n */\n"
        "f(/* redraft: inner */ a);\n",
        [(1, "one", "const a = 1;"), (3, "many lines", "f(a);"), (7, "inner", "f(a);")],
        "const a = 1;\nconst b = `// redraft: no`;\nf(a);\n",
    ),
    ("a.tsx", "<div>\n  {/* redraft: x */}\n  <p/>\n</div>\n", [(2, "x", "<p/>")], "<div>\n  <p/>\n</div>\n"),
    ("a.jsx", "<div>\n  {/* redraft: x */}\n  <p/>\n</div>\n", [(2, "x", "<p/>")], "<div>\n  <p/>\n</div>\n"),
    (
        "a.c",
        '#include <a.h>\n/* redraft: two */ int a; /* x */ // redraft: three\nchar *s = "/* redraft: no */";\n',
        [(2, "two", "int a; /* x */"), (2, "three", "int a; /* x */")],
        '#include <a.h>\nint a; /* x */\nchar *s = "/* redraft: no */";\n',
    ),
    ("a.css", "a { color: red; /* redraft: q */ }\n", [(1, "q", "a { color: red; }")], "a { color: red; }\n"),
    ("a.html", "<p>a</p><!-- redraft: q -->\n", [(1, "q", "<p>a</p>")], "<p>a</p>\n"),
    (
        "a.html",
        "<p>// redraft: no</p>\n<script>\n// redraft: s\nlet a = '// redraft: no'; /* redraft: b */\n</script>\n"
        '<a href="//redraft: no">\n<style>/* redraft: c */ p {}</style>\n',
        [
            (3, "s", "let a = '// redraft: no';"),
            (4, "b", "let a = '// redraft: no';"),
            (7, "c", "<style> p {}</style>"),
        ],
        "<p>// redraft: no</p>\n<script>\nlet a = '// redraft: no';\n</script>\n"
        '<a href="//redraft: no">\n<style> p {}</style>\n',
    ),
    (
        "a.js",
        "a = 'é'; /* redraft: é */ b = 'ü'; /* no */ c = '€'; /* redraft: ü */ d\n",
        [(1, "é", "a = 'é'; b = 'ü'; /* no */ c = '€'; d"), (1, "ü", "a = 'é'; b = 'ü'; /* no */ c = '€'; d")],
        "a = 'é'; b = 'ü'; /* no */ c = '€'; d\n",
    ),
    ("a.xml", "<a><!-- redraft: q --></a>\n", [(1, "q", "<a></a>")], "<a></a>\n"),
    (
        "a.md",
        "# T\n\n<!-- redraft: y\nmore -->\n\n```html\n<!-- redraft: no -->\n```\n",
        [(3, "y more", "```html")],
        "# T\n\n\n```html\n<!-- redraft: no -->\n```\n",
    ),
    ("a.ml", 'let x = 1 (* redraft: q *)\nlet s = "(* redraft: no *)"\n', [(1, "q", "let x = 1")], None),
    ("a.lua", "--[[ redraft: b ]]\nx = 1 -- redraft: l\n", [(1, "b", "x = 1"), (2, "l", "x = 1")], "x = 1\n"),
    ("a.rb", "=begin\nredraft: rb\n=end\nx = '# redraft: no'\n", [(1, "rb", "x = '# redraft: no'")], None),
    ("a.rst", "Title\n=====\n\n.. redraft: r\n\ntext\n", [(4, "r", "text")], "Title\n=====\n\n\ntext\n"),
    ("a.txt", "hi\n# redraft: t\nbye # redraft: no\n", [(2, "t", "bye # redraft: no")], "hi\nbye # redraft: no\n"),
    (
        "a.sql",
        "select 1; -- redraft: q\n/* redraft: b */\nselect '-- redraft: no';\n",
        [(1, "q", "select 1;"), (2, "b", "select '-- redraft: no';")],
        "select 1;\nselect '-- redraft: no';\n",
    ),
    ("Makefile", "# redraft: m\nall:\n\techo '# redraft: no'\n", [(1, "m", "all:")], "all:\n\techo '# redraft: no'\n"),
    ("Dockerfile", "# redraft: d\nFROM x\n", [(1, "d", "FROM x")], "FROM x\n"),
    ("a.bat", "REM redraft: v\necho 1\n", [(1, "v", "echo 1")], "echo 1\n"),
    ("a.el", ';; redraft: v\n(a "; redraft: no")\n', [(1, "v", '(a "; redraft: no")')], '(a "; redraft: no")\n'),
    ("a.php", "<?php\n# redraft: q\n$a = '// redraft: no';\n", [(2, "q", "$a = '// redraft: no';")], None),
    ("a.json", '{"a": 1, // redraft: q\n "b": "// redraft: no"}\n', [(1, "q", '{"a": 1,')], None),
    ("a.yaml", "a: 1 # redraft: y\nb: '# redraft: no'\n", [(1, "y", "a: 1")], "a: 1\nb: '# redraft: no'\n"),
    ("a.gradle", "x = 1 // redraft: q\ns = '// redraft: no'\n", [(1, "q", "x = 1")], "x = 1\ns = '// redraft: no'\n"),
    ("a.nim", "#[ redraft: b ]#\nlet a = 1 # redraft: l\n", [(1, "b", "let a = 1"), (2, "l", "let a = 1")], None),
    ("a.rs", "/// redraft: doc\nfn b() {}\n", [(1, "doc", "fn b() {}")], "fn b() {}\n"),
    ("a.go", "package a // redraft: q\nvar s = `// redraft: no`\n", [(1, "q", "package a")], None),
    ("a.vue", "<script>\n// redraft: js\n</script>\n", [(2, "js", "</script>")], "<script>\n</script>\n"),
]


@pytest.mark.parametrize(("name", "text", "triggers", "left"), CASES, ids=[case[0] for case in CASES])
def test_triggers_are_found_in_comments_only(
    name: str, text: str, triggers: list[tuple[int, str, str]], left: str | None
) -> None:
    lines = text.split("\n")
    found = find_triggers(lines, detect_language(name, lines[0]))
    assert [(trigger.line, trigger.instruction, trigger.place) for trigger in found.triggers] == triggers
    kept = "\n".join(line for _, line in found.kept)
    if left == "#~":
        assert kept == "# Redraft: a program\n# redraft:\nx = 1\n"
    elif left is not None:
        assert kept == left
    if not triggers:
        assert kept == text


@pytest.mark.parametrize("name", sorted(_TABLE))
def test_a_comment_on_a_line_of_its_own_is_found_in_every_language(name: str) -> None:
    language = language_named(name)
    before, after = ("<?php", "$a = 1;") if name == "php" else ("", "a = 1")
    style = language.comments
    for opening, closing in [*((marker, "") for marker in style.line), *style.block]:
        if (name, opening) in _NOT_THEIRS:
            continue
        middle = [f"{opening} redraft: do it {closing}".rstrip()]
        if opening in ("=begin", "%{", "#[["):  # markers that stand on lines of their own
            middle = [opening, "redraft: do it", closing]
        lines = [before, *middle, after, ""]
        found = find_triggers(lines, language)
        assert [trigger.instruction for trigger in found.triggers] == ["do it"], opening
        assert [line for _, line in found.kept] == [before, after, ""], opening


_NOT_THEIRS = {
    *(
        ("html", "//"),
        ("html", "{#"),
        ("html", "/*"),
        ("vue", "//"),
        ("vue", "/*"),
    ),  # only inside of templates, scripts and styles
    *(("sql", "#"), ("ada", "/*"), ("assembly", "@"), ("batch", "::"), ("zig", "/*")),
}
"""Markers that the language's table has for other dialects or other places, and its parser does not know here."""


def test_an_instruction_says_where_and_lists_several() -> None:
    found = find_triggers(["# redraft: a", "x = 1", "# redraft: b"], language_named("python"))
    assert instruction_of(found.triggers[:1], None) == "a (here: at the line `x = 1`)"
    assert instruction_of(found.triggers[1:], None) == "b"
    assert instruction_of((), "all") == "all"
    several = instruction_of(found.triggers, "all")
    assert several.splitlines()[1:] == ["1. all", "2. a (here: at the line `x = 1`)", "3. b"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_the_quick_check_never_misses(encoding: str) -> None:
    assert may_have_triggers("x = 1\r\n# redraft: a".encode(encoding))
    assert not may_have_triggers("x = 1\r\n# re draft".encode(encoding))


_HASH = ["# redraft: do", "#   more", "# redraft:", "  # redraft: in", "'# redraft: no'"]
_BLOCK = ["/* redraft: b */", "// redraft: l", "/* redraft:", "*/", "{/* redraft: j */}", "<!-- redraft: h -->"]
_PIECES = st.sampled_from([*_HASH, *_BLOCK, "x = 1", '"""', "", "\t", "é = 2", "\f", "a\rb"])
_LINES = st.lists(st.lists(_PIECES, max_size=3).map(" ".join), max_size=8)
_LANGUAGES: st.SearchStrategy[Language] = st.sampled_from(
    ["python", "typescript", "c", "html", "markdown", "css", "rust", "yaml"]
).map(language_named)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(_LINES, _LANGUAGES)
def test_taking_triggers_out_touches_their_lines_only(lines: list[str], language: Language) -> None:
    found = find_triggers(lines, language)
    starts = {trigger.line - 1 for trigger in found.triggers}
    if not starts:
        assert found.kept == tuple(enumerate(lines))
    assert [line for line, _ in found.kept] == sorted({line for line, _ in found.kept})
    changed = {line for line, text in found.kept if text != lines[line]}
    gone = set(range(len(lines))) - {line for line, _ in found.kept}
    commented = {line for comment in find_comments(lines, language) for line in range(comment.first, comment.last + 1)}
    assert changed | gone <= commented
    assert starts <= changed | gone
    for trigger in found.triggers:
        assert trigger.instruction == " ".join(trigger.instruction.split()) != ""


@settings(derandomize=True, deadline=None, max_examples=300)
@given(_LINES, _LANGUAGES)
def test_comments_are_in_order_and_apart(lines: list[str], language: Language) -> None:
    comments = find_comments(lines, language)
    places = [((comment.first, comment.start), (comment.last, comment.end)) for comment in comments]
    assert all(start < end for start, end in places)
    assert all(one[1] <= other[0] for one, other in pairwise(places))
    markers = (*language.comments.line, *(opening for opening, _ in language.comments.block))
    assert all(lines[comment.first][comment.start :].startswith(markers) for comment in comments)


@pytest.mark.parametrize(
    ("name", "lines", "count"),
    [
        ("a.py", [line for at in range(10_000) for line in (f"# redraft: do {at}", f"a{at} = 1")], 10_000),
        ("a.py", ["# redraft: do", *["#   more"] * 60_000, "a0 = 1"], 1),
        ("a.js", ["é; /* redraft: do */" * 20_000, "a0 = 1"], 20_000),
        ("a.js", ["/**/" * 20_000, "// redraft: do", "a0 = 1"], 1),
    ],
    ids=["many", "long", "one row", "others"],
)
def test_a_file_of_nothing_but_comments_takes_no_square_of_its_size(name: str, lines: list[str], count: int) -> None:
    """A search that did would be minutes of the test's own time."""
    found = find_triggers(lines, language_named({"a.py": "python", "a.js": "javascript"}[name]))
    assert len(found.triggers) == count
    assert found.kept[-1][1].startswith("a")
