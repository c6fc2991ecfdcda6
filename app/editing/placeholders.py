"""Which lines are comments, and which could stand for code that was left out.

By structure, in any human language: what a comment says is never read, only that it is one, or that a line is an
ellipsis. Knows nothing of two versions; whether such a line replaced anything is for the elision check to say.
Invariant: a line with a statement of its own on it, a no-op aside, is neither.
"""

import re
from collections.abc import Sequence

from app.editing.language import Language

_ELLIPSIS = r"(?:\.{3,}|…)"
# Only dots once quotes, brackets, separators and markup are gone: `[...]`, `"...": "..."`, `{ … },`, `* ...`.
_PUNCTUATION = re.compile(r"[\s\"'`()\[\]{},;:*<>/|+-]+")
_TAG = re.compile(r"</?[\w:.-]+[^>]*>")
_DOTS = re.compile(rf"{_ELLIPSIS}(?:\.|…)*")
_OPENED_BY_ELLIPSIS = re.compile(rf"[\"'`(\[{{<*_\s]*{_ELLIPSIS}(?:\s|[\])}}>\"'`*_]|$)")
# A definition whose whole body is left out on its own line: `def f(): ...`, `f() { ... }`, `f = () => …`.
_STUB = re.compile(rf"(?:[:{{=>]|\b(?:do|then|begin))\s*{_ELLIPSIS}(?:.*{_ELLIPSIS})?[\s)\]}};,]*(?:end)?$")
_EMPTY_BODY = re.compile(r"[{:]\s*/\*.*\*/\s*[)\]};,]*$")
_NO_OP = re.compile(r"(?:pass|\.\.\.|…|;|nil|null|None|\{\s*\})?\s*[;,]?\s*$")

_DIRECTIVES = "define|include|if|ifdef|ifndef|else|elif|endif|pragma|undef|error|warning|line|import|region|endregion"
_HASH_WORDS = re.compile(rf"#\s+(?!(?:{_DIRECTIVES})\b)\S")
_FOREIGN_BLOCKS = ("/*", "<!--", "{/*", "{#")
_FOREIGN_WITH_ELLIPSIS = re.compile(rf"(?:#+|//+|--+|;+|%+|'|\"|!|\(\*|\{{-|REM|rem)\s*[\[(<]*\s*{_ELLIPSIS}")
_ASIDE = re.compile(
    r"\[[^\W\d_][\w'\u2019,.…:-]*(?:\s+[\w'\u2019,.…:-]+)+\s*\]"
    r"|<[^\W\d_][\w'\u2019…-]*(?:\s+[\w'\u2019.…-]+)+>"
)
_PROSE_ASIDE = re.compile(r"[*_]{0,3}(?:\[[^\]]*\]|\([^()]*\))[*_]{0,3}")

_MARKUP = {"html", "xml", "vue", "javascript", "typescript", "tsx", "php", "markdown"}
# Languages in which words in square brackets are code.
_BRACKET_CODE = {"lisp", "clojure", "ini", "toml", "c", "c++", "matlab", "erlang", "text", "html", "xml"}
_SLASHES_ARE_CODE = {"lisp"}


def comment_lines(lines: Sequence[str], language: Language) -> list[bool]:
    """For each line: is it nothing but a comment, by the language's own markers. Blank lines are not, outside of one.

    A block comment counts from a line that starts with its opening, so that a `/*` inside a string opens nothing.
    """
    flags: list[bool] = []
    closing: str | None = None
    for line in lines:
        text = line.strip()
        if closing is None:
            opened = next((pair for pair in language.comments.block if text.startswith(pair[0])), None)
            if opened is None:
                flags.append(text.startswith(language.comments.line) if language.comments.line else False)
                continue
            closing, text = opened[1], text[len(opened[0]) :]
        end = text.find(closing)
        if end < 0:
            flags.append(True)
            continue
        rest = text[end + len(closing) :].strip()
        closing = None
        flags.append(not rest or rest.startswith(language.comments.line or ("\0",)))
    return flags


def placeholder_lines(lines: Sequence[str], language: Language) -> list[bool]:
    """For each line: could it stand for code that was left out. Comments are among them."""
    own = comment_lines(lines, language)
    return [flag or _stands_for_code(line.strip(), language) for flag, line in zip(own, lines, strict=True)]


def _stands_for_code(text: str, language: Language) -> bool:
    if not text:
        return False
    return (
        _is_ellipsis(text, language)
        or _is_foreign_comment(text, language)
        or _is_aside(text, language)
        or _is_stub(text, language)
    )


def _is_ellipsis(text: str, language: Language) -> bool:
    bare = _TAG.sub("", text) if language.name in _MARKUP else text
    return bool(_DOTS.fullmatch(_PUNCTUATION.sub("", bare)) or _OPENED_BY_ELLIPSIS.match(text))


def _is_foreign_comment(text: str, language: Language) -> bool:
    """A comment by another language's markers, as models mix them up."""
    text = text.lstrip("\"'[ ") if text[:1] in "\"'[" else text
    if _FOREIGN_WITH_ELLIPSIS.match(text):
        return True
    if language.prose:
        return False
    if text.startswith("//"):
        return language.name not in _SLASHES_ARE_CODE
    return text.startswith(_FOREIGN_BLOCKS) or bool(_HASH_WORDS.match(text))


def _is_aside(text: str, language: Language) -> bool:
    """Words in brackets where the language has no use for them."""
    if language.prose:
        return bool(_PROSE_ASIDE.fullmatch(text))
    if not _ASIDE.fullmatch(text):
        return False
    return language.name not in (_BRACKET_CODE if text[0] == "[" else _MARKUP)


def _is_stub(text: str, language: Language) -> bool:
    """A no-op or a body left out, said on the same line."""
    if _STUB.search(text) or _EMPTY_BODY.search(text):
        return True
    for marker in (*language.comments.line, *(opening for opening, _ in language.comments.block)):
        code, found, comment = text.partition(f" {marker}")
        if found and (_NO_OP.match(code) or re.match(rf"\W*{_ELLIPSIS}", comment)):
            return True
    return False
