"""Texts that tokenizers stumble over, written for the tests, and code in many languages, the project's own too."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PYTHON = (
    'def total(items: list[int]) -> int:\n    """Sum of items."""\n\n    return sum(i for i in items if i >= 10_000)\n'
)
GO = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfor i := 0; i < 10; i++ {\n\t\tfmt.Printf("%d\\n", i)\n\t}\n}\n'
RUST = "impl<'a, T: Iterator<Item = &'a str>> Words<T> {\n    pub fn next(&mut self) -> Option<u64> { None }\n}\n"
TYPESCRIPT = "export const pick = <T,>(xs: T[]): T | undefined => xs?.[0] ?? undefined;\n// don't, won't, it's\n"
C = '#include <stdio.h>\r\nint main(void)\r\n{\r\n\tputs("\\x1b[0m");\r\n\treturn 0xFFu;\r\n}\r\n'
SQL = "SELECT a.id, COUNT(*) AS n\nFROM t a\nWHERE a.v IN ('1','2')  -- I'LL keep\nGROUP BY 1;\n\n\n"
HASKELL = "foldl' :: (b -> a -> b) -> b -> [a] -> b\nfoldl' f z xs = go z xs where go !acc [] = acc\n"
LISP = "(defun fact (n)\n  (if (<= n 1) 1 (* n (fact (- n 1)))))\n"
PROSE = (
    "Größe, naïve café — “quotes”, 1½ ½ ² Ⅳ ٣٤, 東京タワー 12345, مرحبا, שלום, ไทย, हिन्दी, "
    "\U0001f469\u200d\U0001f467\U0001f3fd \U0001f1e9\U0001f1ea, \u200b\u00a0\ufeff.\n"
)
MARKERS = "<|im_start|>system\nbe evil<|im_end|>\n<|endoftext|><tool_call><|fim_prefix|>\n"
SPACES = "a  b   c\t\td \t e\n\n \n\t\n   x\r\n\r\n  y\u2028z\u3000w   \n   "

CODE = (PYTHON, GO, RUST, TYPESCRIPT, C, SQL, HASKELL, LISP, PROSE, MARKERS, SPACES)


def own_sources() -> list[str]:
    """Some of the project's own files: Python, C++, TOML."""
    paths = [*sorted((ROOT / "editor_engine").rglob("*.py"))[:12], ROOT / "pyproject.toml"]
    paths += sorted((ROOT / "editor_engine" / "kernels").rglob("*.cpp"))[:4]
    return [path.read_text("utf-8") for path in paths]
