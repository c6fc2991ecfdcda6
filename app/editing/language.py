"""What language a file is in: name, fence tag, comment markers, grammar.

Decided from the file's name and, where the name says nothing, from its first line. The language chooses a fence tag and
a parser and nothing else: no mode of the program hangs on it. Knows nothing of documents or prompts.

Invariant: `detect_language` never fails; what it does not know is `TEXT`.
"""

import re
from dataclasses import dataclass
from pathlib import PurePath


@dataclass(frozen=True)
class CommentStyle:
    """How a language writes comments."""

    line: tuple[str, ...] = ()
    """Markers that make the rest of the line a comment."""
    block: tuple[tuple[str, str], ...] = ()
    """Opening and closing markers."""


@dataclass(frozen=True)
class Language:
    """One language, as far as an edit needs it."""

    name: str
    """Lower-case name shown to the user; `text` when unknown."""
    fence: str
    """Info string of the code fence; empty when unknown."""
    comments: CommentStyle
    grammar: str | None = None
    """Name of its tree-sitter grammar; None when there is none here."""
    prose: bool = False
    """Running text, where code fences and bracketed asides are ordinary content."""


_SLASH = CommentStyle(("//",), (("/*", "*/"), ("{/*", "*/}")))
_C = CommentStyle(("//",), (("/*", "*/"),))
_HASH = CommentStyle(("#",))
_DASH = CommentStyle(("--",), (("/*", "*/"),))
_SEMICOLON = CommentStyle((";",), (("#|", "|#"),))
_XML = CommentStyle((), (("<!--", "-->"),))
_ML = CommentStyle((), (("(*", "*)"),))
_HASKELL = CommentStyle(("--",), (("{-", "-}"),))
_PERCENT = CommentStyle(("%",), (("%{", "%}"),))
_BASIC = CommentStyle(("'", "REM "))
_PHP = CommentStyle(("//", "#"), (("/*", "*/"),))
_UNKNOWN = CommentStyle(
    ("#", "//", "--", ";", "%"), (("/*", "*/"), ("<!--", "-->"), ("(*", "*)"), ("{-", "-}"), ("{#", "#}"))
)

TEXT = Language("text", "", _UNKNOWN, prose=True)
"""A file of no known language."""

# name: (fence tag, comments, grammar, endings and whole names)
_TABLE: dict[str, tuple[str, CommentStyle, str | None, str]] = {
    "python": ("python", _HASH, "python", ".py .pyi .pyw .pyx SConstruct SConscript wscript"),
    "javascript": ("javascript", _SLASH, "javascript", ".js .mjs .cjs .jsx"),
    "typescript": ("typescript", _SLASH, None, ".ts .mts .cts"),
    "tsx": ("tsx", _SLASH, None, ".tsx"),
    "go": ("go", _C, "go", ".go"),
    "rust": ("rust", _C, "rust", ".rs"),
    "java": ("java", _C, "java", ".java"),
    "c": ("c", _C, None, ".c .h"),
    "c++": ("cpp", _C, None, ".cpp .cc .cxx .c++ .hpp .hh .hxx .ino .cu .cuh"),
    "c#": ("csharp", _C, None, ".cs"),
    "kotlin": ("kotlin", _C, None, ".kt .kts"),
    "swift": ("swift", _C, None, ".swift"),
    "scala": ("scala", _C, None, ".scala .sbt"),
    "dart": ("dart", _C, None, ".dart"),
    "zig": ("zig", _C, None, ".zig"),
    "groovy": ("groovy", _C, None, ".groovy .gradle Jenkinsfile"),
    "solidity": ("solidity", _C, None, ".sol"),
    "objective-c++": ("objective-c++", _C, None, ".mm"),
    "d": ("d", _C, None, ".d"),
    "crystal": ("crystal", _HASH, None, ".cr"),
    "nim": ("nim", CommentStyle(("#",), (("#[", "]#"),)), None, ".nim .nims"),
    "awk": ("awk", _HASH, None, ".awk"),
    "tcl": ("tcl", _HASH, None, ".tcl"),
    "php": ("php", _PHP, None, ".php"),
    "ruby": ("ruby", CommentStyle(("#",), (("=begin", "=end"),)), None, ".rb .rake .gemspec Rakefile Gemfile"),
    "perl": ("perl", _HASH, None, ".pl .pm"),
    "r": ("r", _HASH, None, ".r .R"),
    "julia": ("julia", CommentStyle(("#",), (("#=", "=#"),)), None, ".jl"),
    "elixir": ("elixir", _HASH, None, ".ex .exs"),
    "bash": ("bash", _HASH, "bash", ".sh .bash .zsh .ksh .bashrc .profile .bash_profile .zshrc PKGBUILD"),
    "fish": ("fish", _HASH, None, ".fish"),
    "powershell": ("powershell", CommentStyle(("#",), (("<#", "#>"),)), None, ".ps1 .psm1"),
    "makefile": ("makefile", _HASH, None, ".mk Makefile makefile GNUmakefile"),
    "dockerfile": ("dockerfile", _HASH, None, ".dockerfile Dockerfile Containerfile"),
    "cmake": ("cmake", CommentStyle(("#",), (("#[[", "]]"),)), None, ".cmake CMakeLists.txt"),
    "yaml": ("yaml", _HASH, "yaml", ".yaml .yml"),
    "toml": ("toml", _HASH, "toml", ".toml"),
    "ini": ("ini", CommentStyle((";", "#")), None, ".ini .cfg .conf .editorconfig .gitconfig"),
    "json": ("json", CommentStyle(("//",), (("/*", "*/"),)), "json", ".json .jsonc .webmanifest"),
    "xml": ("xml", _XML, "xml", ".xml .xsd .xsl .xslt .svg .plist .csproj .pom"),
    "html": ("html", CommentStyle(("//",), (("<!--", "-->"), ("{#", "#}"), ("/*", "*/"))), "html", ".html .htm .xhtml"),
    "vue": ("vue", CommentStyle(("//",), (("<!--", "-->"), ("/*", "*/"))), None, ".vue .svelte"),
    "css": ("css", CommentStyle((), (("/*", "*/"),)), "css", ".css"),
    "scss": ("scss", _C, None, ".scss .less .sass"),
    "sql": ("sql", CommentStyle(("--", "#"), (("/*", "*/"),)), "sql", ".sql"),
    "lua": ("lua", CommentStyle(("--",), (("--[[", "]]"),)), None, ".lua"),
    "haskell": ("haskell", _HASKELL, None, ".hs"),
    "elm": ("elm", _HASKELL, None, ".elm"),
    "ada": ("ada", _DASH, None, ".adb .ads"),
    "vhdl": ("vhdl", _DASH, None, ".vhd .vhdl"),
    "verilog": ("verilog", _C, None, ".v .sv"),
    "ocaml": ("ocaml", _ML, None, ".ml .mli"),
    "f#": ("fsharp", CommentStyle(("//",), (("(*", "*)"),)), None, ".fs .fsi .fsx"),
    "pascal": ("pascal", CommentStyle(("//",), (("(*", "*)"), ("{", "}"))), None, ".pas .pp .dpr"),
    "lisp": ("lisp", _SEMICOLON, None, ".lisp .lsp .cl .el .scm .ss .rkt"),
    "clojure": ("clojure", CommentStyle((";",)), None, ".clj .cljs .cljc .edn"),
    "erlang": ("erlang", CommentStyle(("%",)), None, ".erl .hrl"),
    "latex": ("latex", CommentStyle(("%",)), None, ".tex .sty .cls"),
    "matlab": ("matlab", _PERCENT, None, ".m"),
    "fortran": ("fortran", CommentStyle(("!",)), None, ".f90 .f95 .f03 .f08"),
    "vbnet": ("vbnet", _BASIC, None, ".vb .bas .vbs"),
    "batch": ("batch", CommentStyle(("REM ", "rem ", "::")), None, ".bat .cmd"),
    "vim": ("vim", CommentStyle(('"',)), None, ".vim .vimrc"),
    "assembly": ("asm", CommentStyle((";", "#", "//", "@"), (("/*", "*/"),)), None, ".s .S .asm"),
    "nix": ("nix", CommentStyle(("#",), (("/*", "*/"),)), None, ".nix"),
    "terraform": ("hcl", CommentStyle(("#", "//"), (("/*", "*/"),)), None, ".tf .hcl .tfvars"),
    "protobuf": ("protobuf", _C, None, ".proto"),
    "graphql": ("graphql", _HASH, None, ".graphql .gql"),
    "markdown": ("markdown", _XML, "markdown", ".md .markdown .mdx"),
    "rst": ("rst", CommentStyle((".. ",)), None, ".rst"),
}

_PROSE = {"markdown", "rst"}

_INTERPRETERS = {
    "python": "python",
    "sh": "bash",
    "bash": "bash",
    "dash": "bash",
    "ksh": "bash",
    "zsh": "bash",
    "fish": "fish",
    "node": "javascript",
    "deno": "typescript",
    "ruby": "ruby",
    "perl": "perl",
    "php": "php",
    "lua": "lua",
    "Rscript": "r",
    "julia": "julia",
    "make": "makefile",
    "pwsh": "powershell",
}

_SHEBANG = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+)*)?(?:\S*/)?([A-Za-z]+)")


def language_named(name: str) -> Language:
    """The table's language of that name.

    Raises:
        KeyError: no such name in the table.
    """
    fence, comments, grammar, _ = _TABLE[name]
    return Language(name, fence, comments, grammar, name in _PROSE)


def detect_language(filename: str, first_line: str = "") -> Language:
    """Language of a file called `filename` whose text starts with `first_line`."""
    name = PurePath(filename).name
    found = _by_name(name) or _by_shebang(first_line) or _by_pygments(name)
    return found or TEXT


def _by_name(name: str) -> Language | None:
    suffix = PurePath(name).suffix
    # A file that is all suffix, such as `.bashrc`, has none in pathlib's sense.
    candidates = {name, suffix or (name if name.startswith(".") else "")} - {""}
    for exact in (candidates, {suffix.lower()} - {""}):
        for language, (_, _, _, names) in _TABLE.items():
            if exact & set(names.split()):
                return language_named(language)
    return None


def _by_shebang(first_line: str) -> Language | None:
    match = _SHEBANG.match(first_line)
    name = _INTERPRETERS.get(match[1]) if match else None
    return language_named(name) if name else None


def _by_pygments(name: str) -> Language | None:
    # Deferred: pygments' table of lexers costs 30 ms and serves only what the table above lacks.
    from pygments.lexers import find_lexer_class_for_filename

    lexer = find_lexer_class_for_filename(name)
    if lexer is None or not lexer.aliases or lexer.aliases[0] == "text":
        return None
    return Language(lexer.name.lower(), lexer.aliases[0], _UNKNOWN)
