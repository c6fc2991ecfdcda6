"""`TextArea.text` is never written: a widget's text is a view, and a file's bytes never come from it."""

import ast
import hashlib
from pathlib import Path

import app.tui
from tests.support.scripted_client import ScriptedClient, fenced
from tests.support.tui import Session, drive

SOURCES = sorted(Path(app.tui.__file__).parent.rglob("*.py"))


def text_written(tree: ast.AST) -> list[int]:
    """Lines that assign to an attribute called `text`, in any way, or load a text area with a text."""
    targets = [
        target
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)
        for whole in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for target in ast.walk(whole)
        if isinstance(target, ast.Attribute) and target.attr == "text"
    ]
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr == "load_text")
            or (isinstance(node.func, ast.Name) and node.func.id == "setattr" and "text" in ast.unparse(node))
        )
    ]
    return sorted(node.lineno for node in [*targets, *calls])


def test_the_check_sees_what_it_should() -> None:
    assert text_written(ast.parse("a.text = 1\nb.text += 2\n(c, d.text) = x\ne.load_text(f)\nsetattr(g, 'text', h)"))
    assert text_written(ast.parse("a.text == 1\nb = c.text\nself.text_ = 2")) == []


def test_no_source_of_the_ui_writes_a_text() -> None:
    assert SOURCES
    assert {path.name: found for path in SOURCES if (found := text_written(ast.parse(path.read_text())))} == {}


def test_bytes_that_no_text_widget_could_keep_survive_an_edit(tmp_path: Path) -> None:
    """Mixed line ends, a mark, tabs, trailing blanks, a form feed, no final newline: all but the edited line stay."""
    source = b"\xef\xbb\xbfone\r\n\ttwo  \nthree\x0c\r\n\r\nfour\xc2\xa0\r\nfive = 5\r\nsix\t"
    path = tmp_path / "odd.py"
    path.write_bytes(source)
    reply = "one\n\ttwo  \nthree\x0c\n\nfour\xa0\nfive = 50\nsix\t\n"

    async def steps(session: Session) -> None:
        await session.ask("Make it fifty.")
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(source).digest()
        await session.accept_all()
        await session.press("ctrl+s")

    drive(ScriptedClient(fenced(reply)), steps, file=path)
    assert path.read_bytes() == source.replace(b"five = 5\r\n", b"five = 50\r\n")
