"""Choose a recipe, or give the instruction that is typed a name.

Knows recipes, saves none. Invariant: the row that saves is there only when something is typed.
"""

from collections.abc import Sequence

from app.file_search import best_matches
from app.recipes import Recipe
from app.tui.screens.choice import Choice, ChoiceScreen


class RecipePicker(ChoiceScreen[Recipe]):
    """Answers with a recipe; one without a name is to be saved."""

    def __init__(self, recipes: Sequence[Recipe], typed: str) -> None:
        super().__init__("Recipes", self._matching)
        self._recipes = {f"{recipe.name} {recipe.instruction}".lower(): recipe for recipe in recipes}
        self._typed = typed

    def _matching(self, query: str) -> Sequence[Choice[Recipe]]:
        found = [self._recipes[text] for text in best_matches(query.lower(), self._recipes)]
        rows = [Choice(recipe.name, recipe, recipe.instruction) for recipe in found]
        if self._typed and not query:
            rows.append(Choice("Save what is typed as a recipe", Recipe("", self._typed, own=True), self._typed))
        return rows
