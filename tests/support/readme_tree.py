"""The tree in README, made from the first sentence of every module: one job per file, and never out of date.

`python -m tests.support.readme_tree` writes it into README.md; a test compares.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "editor_engine", "prompts")
BEGIN, END = "<!-- tree -->\n", "<!-- end of tree -->\n"


def job(path: Path) -> str:
    """First sentence of a Python module's docstring, or of a C++ file's opening comment."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        words = ast.get_docstring(ast.parse(text)) or ""
    else:
        comment = re.match(r"(?:[ \t]*//[^\n]*\n)+", text)
        words = re.sub(r"(?m)^[ \t]*//[ \t]?", "", comment[0]) if comment else ""
    first = " ".join(words.split("\n\n")[0].split())
    return re.split(r"(?<=[^.][.;])\s", first)[0].rstrip(".;:")


def entries() -> Iterator[tuple[Path, str]]:
    """(path relative to the root, job) of every source file, folder by folder."""
    for package in PACKAGES:
        paths = [path for path in (ROOT / package).rglob("*") if path.suffix in {".py", ".cpp", ".h"}]
        # A .cpp beside its header has no job of its own.
        paths = [path for path in paths if path.suffix != ".cpp" or not path.with_suffix(".h").exists()]
        for path in sorted(paths, key=lambda path: (path.parent.parts, path.name != "__init__.py", path.name)):
            yield path.relative_to(ROOT), job(path)


def tree() -> str:
    """README's tree as Markdown."""
    lines: list[str] = []
    found = list(entries())
    for path, words in found:
        if path.name == "__init__.py":
            lines += ["", f"**`{path.parent}/`** {words}"]
            if any(other.parent == path.parent and other != path for other, _ in found):
                lines += ["", "| file | job |", "|---|---|"]
        elif lines:
            shown = path.name if path.suffix == ".py" else f"{path.parent.name}/{path.name}"
            lines.append(f"| `{shown}` | {words.replace('|', chr(92) + '|')} |")
    return "\n".join(lines).strip() + "\n"


def with_tree(readme: str) -> str:
    """`readme` with the tree between its two marks."""
    head, rest = readme.split(BEGIN)
    _, tail = rest.split(END)
    return head + BEGIN + tree() + END + tail


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_tree(readme.read_text(encoding="utf-8")), encoding="utf-8")
