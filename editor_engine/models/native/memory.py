"""What a load needs of this machine's memory, and whether it is there.

Knows nothing of how weights are kept. Invariant: a load that is let through had room when it began; one that is refused
says both numbers. Where the system does not say what is free (not Linux), nothing is refused.
"""

from pathlib import Path

from editor_engine.errors import OutOfMemoryError

WORKSPACE_BYTES = 128 << 20
"""Activations of a full pass, the extension and Python itself."""

KV_TOKENS_CHECKED = 8192
"""The KV cache takes memory only as it fills; so many tokens (or the whole context, when shorter) must have room."""


def refuse_if_short(name: str, weights: int, kv_bytes_per_token: int, context: int, available: int | None) -> None:
    """Raise OutOfMemoryError when `weights` bytes, KV cache and workspace exceed `available` bytes (None: unknown)."""
    needed = weights + kv_bytes_per_token * min(context, KV_TOKENS_CHECKED) + WORKSPACE_BYTES
    if available is not None and needed > available:
        raise OutOfMemoryError(
            f"{name} needs about {_gigabytes(needed)} of memory and {_gigabytes(available)} is available; "
            "close other programs or take a smaller model."
        )


def available_bytes(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes this process can still take without swapping: MemAvailable, or less where its cgroups leave less.

    None where the system does not say.
    """
    free = _mem_available(proc / "meminfo")
    limits = [left for folder in _own_cgroups(proc / "self" / "cgroup", cgroups) if (left := _left(folder)) is not None]
    if free is not None:
        limits.append(free)
    return min(limits, default=None)


def _mem_available(meminfo: Path) -> int | None:
    for line in _text(meminfo).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
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
    """Bytes a cgroup still allows; pages of files that it can drop count as free."""
    for limit_name, usage_name, cache_name in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        limit, usage = _text(folder / limit_name).strip(), _text(folder / usage_name).strip()
        if not limit.isdecimal() or not usage.isdecimal():
            continue
        cache = 0
        for line in _text(folder / "memory.stat").splitlines():
            key, _, value = line.partition(" ")
            if key == cache_name and value.strip().isdecimal():
                cache = int(value)
        return max(0, int(limit) - int(usage) + cache)
    return None


def _text(path: Path) -> str:
    """The file's text, empty where there is none: which of these files exist differs by system."""
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
