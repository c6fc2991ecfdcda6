"""Models to take where one does not fit: installed ones first, then those of the catalogue, the largest first.

Knows sizes, not tensors. Invariant: none is offered that is for tests only, damaged, or no smaller than what did not
fit.
"""

from collections.abc import Iterator
from dataclasses import replace

from editor_engine.memory import Choice, MemoryPlan
from editor_engine.store.catalogue import CatalogueModel, catalogue
from editor_engine.store.installed import installed


def smaller_models(plan: MemoryPlan) -> Iterator[Choice]:
    """Other loads in the place of `plan`, alone and with its context."""
    needed = plan.needs[0].weights
    here = {entry.id for entry in installed() if entry.model is not None and entry.whole is not False}
    fit_to_edit = [model for model in catalogue() if not model.for_tests and model.bytes < needed]
    largest_first = sorted(fit_to_edit, key=lambda model: model.bytes, reverse=True)
    for model in largest_first:
        if model.id in here:
            yield Choice(f"the installed model {model.id} (--model {model.id})", _instead(plan, model))
    for model in largest_first:
        if model.id not in here:
            words = f"the model {model.id}, which `redraft models pull {model.id}` fetches"
            yield Choice(words, _instead(plan, model))


def _instead(plan: MemoryPlan, model: CatalogueModel) -> MemoryPlan:
    return replace(plan, needs=(model.need,))
