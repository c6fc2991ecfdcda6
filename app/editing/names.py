"""Names that a lost part of a file defined and that the rest still uses.

Python is read through `ast`; other languages by the look of each occurrence, outside of comments and strings. Knows
nothing of why lines are gone. Invariant: in doubt a name counts as defined, so that only a plain dangling use is
reported.
"""

import ast
import builtins
import re
from collections.abc import Collection, Iterator, Sequence

from app.editing.language import Language
from app.editing.symbols import Symbol, find_symbols, parse_python

_NAME = r"[^\W\d][\w$]*"
_KEYWORDS_BEFORE_A_USE = (
    "return in of and or not new await yield throw case if else elif typeof delete go defer instanceof is as print "
    "echo raise assert when unless while until then do puts extends implements throws import use from export with"
).split()
_DEFINED = re.compile(
    r"^\s*(?:[\w.\[\]<>*&,:@]+\s+)*?(?:"
    r"(?:def|fn|fun|func|function|sub|class|struct|enum|union|interface|trait|type|module|mod|namespace|record|object|"
    rf"protocol|#define)\s+(?:\([^)]*\)\s*)?({_NAME})"
    rf"|(?:let|var|val|local)\s+(?:(?:mut|rec|function)\s+)*({_NAME})"
    rf"|(?:const|static)\s+({_NAME})\s*[:=]"
    r")"
)
_C_FUNCTION = re.compile(
    rf"^(?!\s*(?:return|else|throw|new|case|await|yield)\b)(?:[\w:<>*&\[\],]+\s+)+[*&]*({_NAME})\s*\([^;]*$"
)
_SHELL_FUNCTION = re.compile(rf"^\s*({_NAME})\s*\(\)")
_IMPORT = re.compile(r"^\s*(?:import|use|using|from|(?:const|let|var)\s.*\brequire\b|pub use)\b")
# Names in parentheses before a body are parameters, unless the word before is one of these.
_BRACED = re.compile(r"(\w*)\s*\(([^()]*)\)\s*(?:=>|\{)")
_CONDITIONS = "if while switch for foreach elif until when match with".split()
_HEADER = re.compile(r"\b(?:function|func|fn|def|fun|sub)\b[^(\n]*\(([^()]*)\)")
_GO_IMPORT = re.compile(r'^\s*(?:(\w+)\s+)?"(?:[^"]*/)?([A-Za-z_]\w*)"$')


def dangling_names(
    source: Sequence[str], result: Sequence[str], lost: Collection[int], language: Language
) -> list[str]:
    """Names defined on the lost lines, defined nowhere in `result` and used there, in order of their lines.

    Args:
        source: decoded lines.
        result: decoded lines.
        lost: 0-based source lines.
        language: the file's; unknown languages have no names.
    """
    if language.name == "python":
        before, after = parse_python("\n".join(source)), parse_python("\n".join(result))
        if before is not None and after is not None:
            return _python_dangling(before, after, lost)
    if language.prose or language.name in ("json", "yaml", "toml", "ini", "html", "xml", "css"):
        return []
    symbols = find_symbols(source, language)
    defined = dict.fromkeys(_names_defined(source, lost, symbols, language))
    if not defined:
        return []
    code = _code_text(result, language)
    return [name for name in defined if _is_used(name, code) and not _is_bound(name, code)]


# --- Python -----------------------------------------------------------------------------------------------------------


def _python_dangling(before: ast.Module, after: ast.Module, lost: Collection[int]) -> list[str]:
    bound: set[str] = set(dir(builtins))
    used: set[str] = set()
    for node in ast.walk(after):
        bound.update(_bound_by(node))
        used.update(_used_by(node))
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return []
    lines = {at + 1 for at in lost}
    gone = (
        name
        for node in ast.walk(before)
        if getattr(node, "lineno", None) in lines
        for name in _bound_by(node)
        if not isinstance(node, ast.arg)
    )
    return [name for name in dict.fromkeys(gone) if name in used and name not in bound]


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name


def _used_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        # A method counts as used through the object it belongs to; `other.name` may be anybody's.
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Load()):
            yield name


# --- other languages --------------------------------------------------------------------------------------------------


def _names_defined(
    source: Sequence[str], lost: Collection[int], symbols: Sequence[Symbol] | None, language: Language
) -> Iterator[str]:
    for symbol in symbols or ():
        if symbol.first - 1 in lost and re.fullmatch(_NAME, symbol.base):
            yield symbol.base
    for at in sorted(lost):
        line = source[at]
        if _IMPORT.match(line):
            yield from _imported(line)
        elif language.name == "go" and (quoted := _GO_IMPORT.match(line)):
            yield quoted[1] or quoted[2]
        elif match := _DEFINED.match(line) or _C_FUNCTION.match(line) or _SHELL_FUNCTION.match(line):
            yield next(name for name in match.groups() if name)


def _imported(line: str) -> Iterator[str]:
    """`a` and `c` of `import { a, b as c } from 'm'`; `List` of `use std::List;`."""
    body = line.partition(" from ")[0] if "from" in line else line
    inner = re.search(r"\{([^}]*)\}", body)
    parts = inner[1].split(",") if inner else [re.split(r"[=;]", body)[0]]
    for part in parts:
        words = re.findall(_NAME, part)
        if words:
            yield words[-1]


def _code_text(lines: Sequence[str], language: Language) -> str:
    """The text with comments and strings blanked, by pygments; as it is where pygments has no lexer."""
    # Deferred: lexers cost 30 ms and are needed only once lines are lost.
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, String
    from pygments.util import ClassNotFound

    text = "\n".join(lines)
    try:
        lexer = get_lexer_by_name(language.fence, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return text
    # Interpolated names are tokens of their own, of no string kind, and stay.
    return "".join(
        re.sub(r"[^\n]", " ", value) if kind in Comment.Single or kind in Comment.Multiline or kind in String else value
        for kind, value in lexer.get_tokens(text)
    )


def _is_used(name: str, code: str) -> bool:
    """A free occurrence, or one through the object itself; `other.name` may be anybody's."""
    free = rf"(?<![\w$.>:]){re.escape(name)}(?![\w$])(?!\s*:(?!:))"
    own = rf"(?<![\w$])(?:this|self|Self|static|super)(?:\.|->|::){re.escape(name)}(?![\w$])"
    return re.search(f"{free}|{own}", code) is not None


def _is_bound(name: str, code: str) -> bool:
    """True if any occurrence looks like a definition, a parameter or an import."""
    word = re.compile(rf"(?<![\w$.]){re.escape(name)}(?![\w$])")
    if re.search(rf"{word.pattern}\s*(?::=|=(?![=>])|=>|:(?!:))", code):
        return True
    for before in re.finditer(rf"([\w$#]*[\w$>\]*&}}#])[ \t*&]+{word.pattern}", code):
        if before[1] not in _KEYWORDS_BEFORE_A_USE:
            return True
    parameters = [match[2] for match in _BRACED.finditer(code) if match[1] not in _CONDITIONS]
    parameters += _HEADER.findall(code)
    imports = [line for line in code.split("\n") if _IMPORT.match(line)]
    return any(word.search(text) for text in (*parameters, *imports))
