"""Memory there is: the numbers of /proc and of cgroups."""

import subprocess
import sys
from pathlib import Path

import pytest

from editor_engine.machine import available_bytes, multiplies_bfloat16, peak_rss_bytes


def system(root: Path, files: dict[str, str]) -> int | None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return available_bytes(root / "proc", root / "cgroup")


MEMINFO = {"proc/meminfo": "MemTotal: 32000 kB\nMemFree: 100 kB\nMemAvailable:   20000 kB\n"}


def test_without_cgroups_it_is_mem_available(tmp_path: Path) -> None:
    assert system(tmp_path, MEMINFO) == 20000 * 1024


def test_a_system_that_does_not_say(tmp_path: Path) -> None:
    assert system(tmp_path, {}) is None


def test_a_cgroup_without_limit_changes_nothing(tmp_path: Path) -> None:
    group = {"cgroup/a/memory.max": "max\n", "cgroup/a/memory.current": "5\n", "proc/self/cgroup": "0::/a\n"}
    assert system(tmp_path, MEMINFO | group) == 20000 * 1024


def test_the_tightest_cgroup_counts_and_dropped_pages_are_free(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/a/b\n",
        "cgroup/a/memory.max": "1000\n",
        "cgroup/a/memory.current": "900\n",
        "cgroup/a/memory.stat": "anon 700\ninactive_file 30\nactive_file 20\n",
        "cgroup/a/b/memory.max": "2000\n",
        "cgroup/a/b/memory.current": "800\n",
    }
    assert system(tmp_path, MEMINFO | group) == 150


def test_a_container_sees_its_limit_at_the_mount(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "0::/outside/name\n",
        "cgroup/memory.max": "1000\n",
        "cgroup/memory.current": "1200\n",
    }
    assert system(tmp_path, MEMINFO | group) == 0


def test_version_1(tmp_path: Path) -> None:
    group = {
        "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/a\n0::/\n",
        "cgroup/memory/a/memory.limit_in_bytes": "1000\n",
        "cgroup/memory/a/memory.usage_in_bytes": "100\n",
        "cgroup/memory/a/memory.stat": "inactive_file 7\ntotal_inactive_file 9\n",
    }
    assert system(tmp_path, MEMINFO | group) == 909


def test_nonsense_is_not_a_limit(tmp_path: Path) -> None:
    group = {"proc/self/cgroup": "nonsense\n0::/a\n", "cgroup/a/memory.max": "?", "cgroup/a/memory.current": "1"}
    assert system(tmp_path, MEMINFO | group) == 20000 * 1024


def test_this_machine_says_something_sane() -> None:
    available = available_bytes()
    assert available is None or 10**6 < available < 10**15


def test_a_unit_for_bfloat16_is_found_by_its_flag(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    assert not multiplies_bfloat16(cpuinfo)
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu avx512_bf16\n")
    assert not multiplies_bfloat16(cpuinfo)
    cpuinfo.write_text("processor\t: 0\nflags\t\t: fpu amx_bf16 avx2\n")
    assert multiplies_bfloat16(cpuinfo)


def test_the_peak_is_our_own_and_not_that_of_the_program_that_started_us() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc")
    held = bytearray(b"x") * (200 << 20)
    code = "from editor_engine.machine import peak_rss_bytes; print(peak_rss_bytes())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 1 << 20 < int(done.stdout) < len(held) < peak_rss_bytes()


def test_without_proc_the_system_s_own_peak_stands_in(tmp_path: Path) -> None:
    assert peak_rss_bytes(tmp_path / "status") > 1 << 20
