"""What passes cost on this machine, kept from one run to the next: per model file, threads, variant, device, contract.

Costs decide how many rows a pass has, never what is emitted. Invariant: a lost, damaged or unwritable memory means the
shipped table, never an error; nothing is measured at load.
"""

import contextlib
import json
from pathlib import Path

from editor_engine.atomic_file import write_atomically
from editor_engine.draft.pass_cost import PassCost
from editor_engine.models.target import ModelInfo


def costs_file(folder: Path, contract_version: int, threads: int, isa: str) -> Path:
    """Where the costs of a model are kept under these conditions; `folder` belongs to the model file."""
    return folder / f"pass-ratios-v{contract_version}-t{threads}-{isa}.json"


def read_costs(file: Path, isa: str) -> PassCost | None:
    """The shipped table with what was kept in `file`; None where nothing was, or nothing that can be used."""
    return _restored(PassCost.shipped(isa), file)


def _restored(cost: PassCost, file: Path) -> PassCost | None:
    try:
        snapshot = json.loads(file.read_text("utf-8"))
        cost.restore(snapshot)
    except (OSError, ValueError, TypeError, AttributeError):  # missing, or not such a snapshot
        return None
    return cost if snapshot else None


def _table(info: ModelInfo) -> PassCost:
    """A graphics processor waits for the weights, whatever the number of rows."""
    return PassCost.shipped(info.isa) if info.device == "cpu" else PassCost.flat()


class CostMemory:
    """The pass costs of one loaded model."""

    def __init__(self, info: ModelInfo, folder: Path | None) -> None:
        """`folder` belongs to the model file; None keeps nothing."""
        variant = info.isa if info.device == "cpu" else f"{info.isa} on {info.device}"
        self._path = None if folder is None else costs_file(folder, info.contract_version, info.threads, variant)
        known = None if self._path is None else _restored(_table(info), self._path)
        self.cost = known or _table(info)
        """Shared by every request's drafter, which corrects it."""

    def save(self) -> None:
        """Write what was learned, whole or not at all."""
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, json.dumps(self.cost.snapshot()).encode())
