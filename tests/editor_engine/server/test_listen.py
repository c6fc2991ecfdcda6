"""Sockets: ours alone, one server on each, and what a killed one left is cleared."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from editor_engine.server.listen import AlreadyServedError, KeyNeededError, ListenError, listening
from editor_engine.server.options import ServeOptions


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "redraft" / "serve.sock"


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_the_socket_and_its_folder_are_ours_alone(place: Path) -> None:
    with listening(ServeOptions(socket=place)) as (sock,):
        sock.listen()
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        connect(place)
    assert list(place.parent.iterdir()) == []


def test_nobody_is_told_to_close_the_folder_that_all_share(place: Path) -> None:
    place.parent.mkdir()
    place.parent.chmod(0o1777)
    with pytest.raises(ListenError, match="mode 1777") as caught, listening(ServeOptions(socket=place)):
        pass
    assert "chmod" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o750, 0o711, 0o704])
def test_a_folder_open_to_others_is_refused(place: Path, mode: int) -> None:
    place.parent.mkdir()
    place.parent.chmod(mode)
    with pytest.raises(ListenError, match="chmod 700"), listening(ServeOptions(socket=place)):
        pass
    assert list(place.parent.iterdir()) == []


def test_a_folder_of_someone_else_is_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.parent.mkdir(mode=0o700)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(ListenError, match="another user"), listening(ServeOptions(socket=place)):
        pass


def test_a_link_in_place_of_the_folder_is_refused(place: Path) -> None:
    (place.parent.parent / "elsewhere").mkdir(mode=0o700)
    place.parent.symlink_to("elsewhere")
    with pytest.raises(ListenError, match="links"), listening(ServeOptions(socket=place)):
        pass


def test_a_file_in_place_of_the_socket_is_kept(place: Path) -> None:
    place.parent.mkdir(mode=0o700)
    place.write_text("precious")
    with pytest.raises(ListenError, match="no socket"), listening(ServeOptions(socket=place)):
        pass
    assert place.read_text() == "precious"
    assert list(place.parent.iterdir()) == [place]


def test_a_second_server_is_refused_with_the_first_ones_process(place: Path) -> None:
    options = ServeOptions(socket=place)
    with listening(options) as (sock,):
        sock.listen()
        with pytest.raises(AlreadyServedError, match=f"process {os.getpid()}"), listening(options):
            pass
        connect(place)
    with listening(options):
        pass


def test_a_killed_server_leaves_nothing_in_the_way(place: Path) -> None:
    child = (
        "import os, signal\nfrom pathlib import Path\n"
        "from editor_engine.server.listen import listening\nfrom editor_engine.server.options import ServeOptions\n"
        f"with listening(ServeOptions(socket=Path({str(place)!r}))): os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", child], timeout=60).returncode == -9
    assert {path.name for path in place.parent.iterdir()} == {"serve.sock", "serve.sock.lock"}
    with listening(ServeOptions(socket=place)) as (sock,):
        sock.listen()
        connect(place)
    assert list(place.parent.iterdir()) == []


def test_a_socket_that_someone_put_in_our_place_is_not_removed(place: Path) -> None:
    with listening(ServeOptions(socket=place)):
        place.unlink()
        place.write_text("theirs")
    assert place.read_text() == "theirs"


def test_a_path_too_long_for_a_socket_is_said(tmp_path: Path) -> None:
    with pytest.raises(ListenError, match="too long"), listening(ServeOptions(socket=tmp_path / ("x" * 120) / "s")):
        pass


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    with pytest.raises(ListenError, match="cannot be used"), listening(ServeOptions(socket=tmp_path / "a" / "b" / "s")):
        pass


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_other_machines_need_a_key(host: str) -> None:
    with pytest.raises(KeyNeededError, match="REDRAFT_ENGINE_KEY"), listening(ServeOptions(host=host, port=0)):
        pass


def test_with_a_key_other_machines_may_come() -> None:
    with listening(ServeOptions(host="0.0.0.0", port=0, key="k")) as (sock,):
        assert sock.getsockname()[0] == "0.0.0.0"


def test_a_name_that_stands_for_another_address_is_not_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("0.0.0.0", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: found)
    with pytest.raises(KeyNeededError), listening(ServeOptions(host="localhost", port=0)):
        pass


def test_a_port_that_is_taken_is_said() -> None:
    with listening(ServeOptions(port=0)) as (sock,):
        sock.listen()
        port = sock.getsockname()[1]
        with pytest.raises(ListenError, match="another program"), listening(ServeOptions(port=port)):
            pass


def test_nothing_to_listen_on_is_said() -> None:
    with pytest.raises(ListenError), listening(ServeOptions()):
        pass
