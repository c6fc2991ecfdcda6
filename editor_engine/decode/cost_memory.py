"""What passes cost on this machine, kept from one run to the next: per model file, threads, variant, device, contract.

Costs decide how many rows a pass has, never what is emitted. Invariant: a lost, damaged or unwritable memory means the
shipped table, never an error; nothing is measured at load.
"""

import contextlib
import json
from pathlib import Path

from editor_engine.atomic_file import write_atomically
from editor_engine.draft.pass_cost import PassCost
from editor_engine.foreign_json import read_kept
from editor_engine.models.target import ModelInfo


def costs_file(folder: Path, contract_version: int, threads: int, variant: str, table: PassCost) -> Path:
    """Where the costs of a model are kept under these conditions; `folder` belongs to the model file.

    What is kept are ratios to `table`, so another table has another file.
    """
    return folder / f"pass-ratios-v{contract_version}-t{threads}-{variant}-{table.table_hash}.json"


def read_costs(file: Path, table: PassCost) -> PassCost | None:
    """`table` with what was kept in `file`; None where nothing was, or nothing that can be used."""
    snapshot = read_kept(file)
    try:
        table.restore(snapshot)
    except (ValueError, TypeError, AttributeError, OverflowError):  # not such a snapshot
        return None
    return table if snapshot else None


def _table(info: ModelInfo) -> PassCost:
    """A graphics processor waits for the weights, whatever the number of rows."""
    return PassCost.shipped(info.isa) if info.device == "cpu" else PassCost.flat()


class CostMemory:
    """The pass costs of one loaded model."""

    def __init__(self, info: ModelInfo, folder: Path | None) -> None:
        """`folder` belongs to the model file; None keeps nothing."""
        self.cost = _table(info)
        """Shared by every request's drafter, which corrects it."""
        self._path = None
        if folder is not None:
            variant = info.isa if info.device == "cpu" else f"{info.isa} on {info.device}"
            self._path = costs_file(folder, info.contract_version, info.threads, variant, self.cost)
            self.cost = read_costs(self._path, self.cost) or _table(info)

    def save(self) -> None:
        """Write what was learned, whole or not at all."""
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, json.dumps(self.cost.snapshot()).encode())
