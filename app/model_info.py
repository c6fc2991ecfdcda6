"""Looks at models without loading them: what is known of each, and what loads of it take of this machine's memory.

Brings the facts of store, files and system together; what reads model files is imported when it is asked for.
Invariant: nothing is fetched, and of a model's files the headers are read.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.load_options import LoadOptions
from app.model_room import Room, rooms
from app.model_rows import ModelRow, model_row
from editor_engine.errors import EngineError, ModelFileError, UnsupportedModelError
from editor_engine.memory import CHECKED_TOKENS, CPU, Choice, MemoryPlan, nearest, size_words
from editor_engine.store.catalogue import CatalogueModel, find

if TYPE_CHECKING:  # these bring numpy: 0.1 s that `--help` must not pay
    from editor_engine.config import EngineConfig
    from editor_engine.gpus import Gpu


@dataclass(frozen=True)
class SeenModel:
    """One model."""

    model: CatalogueModel | None
    """None: not in the catalogue."""
    row: ModelRow
    rooms: tuple[Room, ...]
    """On each device it could be loaded on."""
    gpus: "tuple[Gpu, ...]"
    """Graphics processors of this machine."""

    def words(self) -> list[str]:
        """What of it is about memory, in lines for people."""
        lines = [f"{'on ' + room.device:<15} {room.sentence()}" for room in self.rooms]
        for gpu in self.gpus:
            free = "unknown" if gpu.free is None else size_words(gpu.free)
            lines.append(f"{gpu.place:<15} {gpu.name}, {free} free")
        return lines if self.gpus else [*lines, f"{'GPU':<15} none seen"]


def see_model(options: LoadOptions, note: Callable[[str], object]) -> SeenModel:
    """All about the model of the options. Raises what finding models and reading their headers raises."""
    from editor_engine.gpus import see_gpus
    from editor_engine.store.installed import InstalledModel, find_installed, locate

    name, gpus = options.model or "", see_gpus()
    entry, model = find_installed(name), find(name)
    if entry is None and model is not None:  # not fetched yet: the catalogue knows enough
        found = _shown(_planner(options, note)(model, None))
        return SeenModel(model, model_row(model, None, None, found[0]), found, gpus)
    if entry is not None:
        try:
            found = _rooms(entry.path, options, gpus, note)
        except (ModelFileError, UnsupportedModelError) as error:  # what else is known of it is shown all the same
            note(str(error))
            found = ()
        return SeenModel(entry.model, model_row(entry.model, entry, None, found[0] if found else None), found, gpus)
    located = locate(name)
    found = _rooms(located.path, options, gpus, note)
    files = [located.path] if located.path.is_file() else located.path.glob("*.safetensors")
    size = sum(file.stat().st_size for file in files)
    outside = InstalledModel(located.id, located.path, size, located.sha256, None)
    return SeenModel(None, replace(model_row(None, outside, None, found[0]), installed=False), found, gpus)


def _rooms(
    path: Path, options: LoadOptions, gpus: "tuple[Gpu, ...]", note: Callable[[str], object]
) -> tuple[Room, ...]:
    """On each device, unless the options name one."""
    from editor_engine.machine import available_bytes
    from editor_engine.models.needs import Machine, choices, plan_load
    from editor_engine.store.installed import locate

    config = options.config(path, None if options.draft_model is None else locate(options.draft_model).path)
    machine = Machine(available_bytes(), gpus)
    if (absent := _absent(config, gpus)) is not None:
        note(f"{absent} is not seen here, and a load that does not find it is refused.")
    is_free = config.hf.device == "auto" and config.hf.gpu_layers is None and not config.idle
    devices = [CPU, *(gpu.place for gpu in gpus)] if is_free else [config.hf.device]
    found: dict[str, Room] = {}
    for device in devices:
        asked = replace(config, hf=replace(config.hf, device=device))
        for room in _shown(plan_load(asked, machine), choices(asked, machine)):
            found.setdefault(room.device, room)
    return tuple(found.values())


def _absent(config: "EngineConfig", gpus: "tuple[Gpu, ...]") -> str | None:
    """The graphics processor that the options ask for and this machine does not show."""
    device = config.hf.device
    if not config.model_path.is_dir() or device == CPU or (device == "auto" and not config.hf.gpu_layers):
        return None
    place = device if ":" in device else "cuda:0"
    return None if place in {gpu.place for gpu in gpus} else place


def _shown(plan: MemoryPlan, others: Iterable[Choice] = ()) -> tuple[Room, ...]:
    """With the nearest choice, of the same models or a smaller one, where the plan does not fit."""
    from editor_engine.store.smaller import smaller_models

    choice = None if plan.fits else nearest(plan, (*others, *smaller_models(plan)))
    return rooms(plan, None if choice is None else choice.words)


Listed = Callable[[CatalogueModel | None, Path | None], Room | None]
"""The room of a model of the catalogue, or of the file it has been fetched to."""


def listed(options: LoadOptions, note: Callable[[str], object]) -> Listed:
    """How much room each model of a list takes with these options; None for a file that cannot be read.

    A draft model that cannot be found is noted and left out: the list is where it is fetched from.
    """
    plan_of = _planner(options, note)

    def room(model: CatalogueModel | None, path: Path | None) -> Room | None:
        if path is not None:
            with suppress(EngineError):  # damaged, or of a kind that does not run here: a load will say so
                return rooms(plan_of(None, path))[0]
        return None if model is None else rooms(plan_of(model, None))[0]

    return room


def _planner(
    options: LoadOptions, note: Callable[[str], object]
) -> Callable[[CatalogueModel | None, Path | None], MemoryPlan]:
    """Plans by a file, else by the catalogue."""
    from editor_engine.gpus import see_gpus
    from editor_engine.machine import available_bytes
    from editor_engine.models.needs import Machine, draft_needs, plan_load
    from editor_engine.store.hub_folders import hub_folders
    from editor_engine.store.installed import locate

    machine = Machine(available_bytes(), see_gpus() if hub_folders() else ())  # files run on the CPU
    draft = None
    try:
        draft = None if options.draft_model is None else locate(options.draft_model).path
    except EngineError as error:
        note(str(error))

    def plan_of(model: CatalogueModel | None, path: Path | None) -> MemoryPlan:
        if path is not None:
            return plan_load(options.config(path, draft), machine)
        if model is None:
            raise ValueError("a plan is of a model or of a file")
        asked = options.context_length
        drafts = () if draft is None else draft_needs(draft, options.config(draft, None), machine)
        plan = MemoryPlan((model.need, *drafts), asked or CHECKED_TOKENS, asked is not None, 0, machine.free())
        return replace(plan, cap=options.max_memory)

    return plan_of
