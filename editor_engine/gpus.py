"""Which graphics processors this machine has and how much of their memory is free, without a library of theirs. Light.

Asks the driver's own program and believes it; knows nothing of what torch can use. Invariant: a processor that is not
seen, or does not say, is never guessed at, and asking never fails or hangs.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

COMMAND = ("nvidia-smi", "--query-gpu=index,uuid,name,memory.total,memory.free", "--format=csv,noheader,nounits")
PATIENCE_S = 10.0
"""A driver that is waking up takes some seconds."""


@dataclass(frozen=True)
class Gpu:
    """One processor."""

    number: int
    """As CUDA counts those that this process may use, from 0."""
    name: str
    total: int | None
    """Bytes of memory; None: not said."""
    free: int | None
    """Bytes that nobody has taken."""

    @property
    def place(self) -> str:
        """As options and plans name it."""
        return f"cuda:{self.number}"


def see_gpus(command: Sequence[str] = COMMAND, environment: Mapping[str, str] | None = None) -> tuple[Gpu, ...]:
    """Those that this process may use, in CUDA's order; none where there is no driver."""
    environment = os.environ if environment is None else environment
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=True, text=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()
    found: list[tuple[str, Gpu]] = []
    for line in done.stdout.splitlines():
        # A name may have a comma in it; what stands around it has none.
        index, _, rest = line.partition(", ")
        uuid, _, rest = rest.partition(", ")
        name, *sizes = rest.rsplit(", ", 2)
        if index.strip().isdecimal() and len(sizes) == 2:
            found.append((uuid, Gpu(int(index), name, *map(_bytes, sizes))))
    return _visible(found, environment.get("CUDA_VISIBLE_DEVICES"))


def _bytes(mebibytes: str) -> int | None:
    return int(mebibytes) << 20 if mebibytes.strip().isdecimal() else None


def _visible(found: Sequence[tuple[str, Gpu]], wanted: str | None) -> tuple[Gpu, ...]:
    """CUDA numbers what the variable names, in its order, up to the first name that is none."""
    if wanted is None:
        return tuple(gpu for _, gpu in found)
    visible: list[Gpu] = []
    for name in map(str.strip, wanted.split(",")):
        gpu = next(
            (
                gpu
                for uuid, gpu in found
                if name == str(gpu.number) or (name.startswith("GPU-") and uuid.startswith(name))
            ),
            None,
        )
        if gpu is None:
            break
        visible.append(Gpu(len(visible), gpu.name, gpu.total, gpu.free))
    return tuple(visible)
