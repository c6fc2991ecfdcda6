"""What a saved file is to be given as its standing instruction: one text for all, or a rules file of globs.

A rules file is TOML: patterns as in .gitignore, relative to the watched folder, and an instruction for each. The first
pattern that fits counts. Knows nothing of inline triggers. Invariant: a rules file that is not understood in full is
refused before anything is watched.
"""

from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.base import GitIgnorePatternError

from app.errors import SettingsError
from app.paths import shown
from app.toml_file import read_toml


@dataclass(frozen=True)
class _Rule:
    spec: GitIgnoreSpec
    instruction: str


@dataclass(frozen=True)
class StandingRules:
    """The standing instruction of every file."""

    everywhere: str | None = None
    """For files that no rule is for; None leaves those alone."""
    rules: tuple[_Rule, ...] = ()

    def instruction(self, relative: str) -> str | None:
        """For a file by its path relative to its root; None where only inline triggers count."""
        for rule in self.rules:
            if rule.spec.match_file(relative):
                return rule.instruction
        return self.everywhere

    @property
    def empty(self) -> bool:
        """True when no file has a standing instruction."""
        return self.everywhere is None and not self.rules


def read_rules(path: str, everywhere: str | None = None) -> StandingRules:
    """A rules file. Raises SettingsError naming the file and what is wrong with it."""
    said = shown(path)
    try:
        table = read_toml(Path(path))
    except FileNotFoundError as error:
        raise SettingsError(f"The rules {said} cannot be read: {error.strerror}.") from error
    rules: list[_Rule] = []
    for pattern, instruction in table.items():
        if not isinstance(instruction, str) or not instruction.strip():
            raise SettingsError(f'The rules {said}: "{shown(pattern)}" needs an instruction in quotes.')
        try:
            rules.append(_Rule(GitIgnoreSpec.from_lines([pattern]), instruction))
        except GitIgnorePatternError as error:
            raise SettingsError(f'The rules {said}: "{shown(pattern)}" is not a pattern.') from error
    if not rules:
        raise SettingsError(f'The rules {said} have no rule: write lines such as "*.py" = "Add type hints".')
    return StandingRules(everywhere, tuple(rules))
