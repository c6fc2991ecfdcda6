"""What a figure depends on besides the code: machine, model file, threads, lengths, versions.

Reads the system, loads nothing. Invariant: nothing in it names the machine or its user, only the kind of machine.
"""

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from editor_engine.models.target import ModelInfo

_CPUINFO = Path("/proc/cpuinfo")


def processor(cpuinfo: Path = _CPUINFO) -> str:
    """Model name of the processor; what the platform calls itself where Linux does not say."""
    try:
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    except OSError:
        pass  # not Linux: the platform module knows less, but something
    return platform.processor() or platform.machine()


def package_version(name: str) -> str | None:
    """Version of an installed package, None when it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine_conditions() -> dict[str, object]:
    """Processor, its threads, system, versions, and how busy the machine was just before."""
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 2),
        "redraft": package_version("redraft"),
        "python": ".".join(map(str, sys.version_info[:3])),
    }


def model_conditions(info: ModelInfo) -> dict[str, object]:
    """The model file and how it is run."""
    return {
        "model": info.name,
        "model_sha256": info.sha256,
        "device": info.device,
        "threads": info.threads,
        "isa": info.isa,
        "contract_version": info.contract_version,
    }


def words(conditions: Mapping[str, object]) -> str:
    """One `name value` a line, for people."""
    width = max(map(len, conditions))
    return "\n".join(f"{name.replace('_', ' '):<{width}}  {_shown(value)}" for name, value in conditions.items())


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return "unknown" if value is None else str(value)
