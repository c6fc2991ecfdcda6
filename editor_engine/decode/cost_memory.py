"""What passes cost on this machine, kept from one run to the next: per model file, threads, variant and contract.

Costs decide how many rows a pass has, never what is emitted. Invariant: a lost, damaged or unwritable memory means the
shipped table, never an error; nothing is measured at load.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from editor_engine.draft.pass_cost import PassCost
from editor_engine.models.target import ModelInfo


class CostMemory:
    """The pass costs of one loaded model."""

    def __init__(self, info: ModelInfo, folder: Path | None) -> None:
        """`folder` belongs to the model file; None keeps nothing."""
        name = f"pass-ratios-v{info.contract_version}-t{info.threads}-{info.isa}.json"
        self._path = None if folder is None else folder / name
        self.cost = PassCost.shipped(info.isa)
        """Shared by every request's drafter, which corrects it."""
        if self._path is None:
            return
        try:
            self.cost.restore(json.loads(self._path.read_text("utf-8")))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, AttributeError):  # not such a snapshot: start again from the table
            self.cost = PassCost.shipped(info.isa)

    def save(self) -> None:
        """Write what was learned, whole or not at all."""
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=".pass-cost-")
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(self.cost.snapshot(), stream)
            os.replace(temporary, self._path)
