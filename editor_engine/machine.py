"""How much memory this process took and can still take, and what its processor is good at. Light; used by the store's
choice of a model, by a load and by the figures of a request.

Knows nothing of models. Where the system does not say what is free (not Linux), the answer is None, never a guess.
"""

import resource
import sys
from pathlib import Path


def peak_rss_bytes(status: Path = Path("/proc/self/status")) -> int:
    """Peak resident bytes of this process since its program was started.

    getrusage, which stands in where there is no /proc (kilobytes, on macOS bytes), would count what the parent had when
    it started us: the peak outlives the change of program.
    """
    peak = _kilobytes(status, "VmHWM:")
    if peak is None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
    return peak * 1024


def peak_bytes_of(pid: int) -> int | None:
    """Peak resident bytes of any process since its program was started; None where the system does not say."""
    peak = _kilobytes(Path(f"/proc/{pid}/status"), "VmHWM:")
    return None if peak is None else peak * 1024


def available_bytes(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes this process can still take without swapping: MemAvailable, or less where its cgroups leave less.

    None where the system does not say.
    """
    free = _kilobytes(proc / "meminfo", "MemAvailable:")
    limits = [left for folder in _own_cgroups(proc / "self" / "cgroup", cgroups) if (left := _left(folder)) is not None]
    if free is not None:
        limits.append(free * 1024)
    return min(limits, default=None)


def multiplies_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """The processor has a unit for matrices of bfloat16 (AMX); False where the system does not say."""
    lines = _text(cpuinfo).splitlines()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return "amx_bf16" in flags.split()


def _kilobytes(file: Path, label: str) -> int | None:
    for line in _text(file).splitlines():
        if line.startswith(label):
            return int(line.split()[1])
    return None


def _own_cgroups(membership: Path, root: Path) -> list[Path]:
    """Folders of this process's memory cgroups (version 2, then 1), each with every parent up to the mount."""
    folders: list[Path] = []
    for line in _text(membership).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers == "" or "memory" in controllers.split(","):
            mount = root if controllers == "" else root / "memory"
            folder = mount / path.lstrip("/")
            # A container may see its own cgroup as the root: a path that is not there ends at the mount all the same.
            folders += [folder, *(parent for parent in folder.parents if parent.is_relative_to(mount))]
    return folders


def _left(folder: Path) -> int | None:
    """Bytes a cgroup still allows; pages of files that it can drop count as free.

    Active ones too: after one load they are the very weights the next load needs.
    """
    for limit_name, usage_name, cache_names in (
        ("memory.max", "memory.current", ("active_file", "inactive_file")),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file")),
    ):
        limit, usage = _text(folder / limit_name).strip(), _text(folder / usage_name).strip()
        if not limit.isdecimal() or not usage.isdecimal():
            continue
        cache = 0
        for line in _text(folder / "memory.stat").splitlines():
            key, _, value = line.partition(" ")
            if key in cache_names and value.strip().isdecimal():
                cache += int(value)
        return max(0, int(limit) - int(usage) + cache)
    return None


def _text(path: Path) -> str:
    """The file's text, empty where there is none: which of these files exist differs by system."""
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""
