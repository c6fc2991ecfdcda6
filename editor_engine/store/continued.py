"""Downloads one file of the model hub and continues what an earlier call left of it; its own client begins anew.

Knows HTTP ranges; nothing of models. Sends no token. Invariant: bytes that have arrived are never thrown away but where
the server begins anew, and the file has `size` bytes in the end or an error says why not.
"""

from pathlib import Path

from editor_engine.errors import FetchError
from editor_engine.store.hashing import OnBytes

_SILENCE_SECONDS = 30.0  # without a byte


def download(url: str, part: Path, size: int, on_bytes: OnBytes) -> None:
    """Bring `part` to `size` bytes. A connection that breaks is taken up again as long as each brings something.

    Raises FetchError, OSError, and the errors of the HTTP client.
    """
    # Both bring an HTTP client: 0.3 s that only a fetch pays.
    import httpx2
    from huggingface_hub import get_session

    if _bytes(part) > size:
        part.unlink()
    while (before := _bytes(part)) < size or not part.exists():
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={before}-"} if before else {})}
        try:
            with get_session().stream(
                "GET", url, headers=headers, follow_redirects=True, timeout=_SILENCE_SECONDS
            ) as answer:
                continues = answer.status_code == 206
                if continues and not answer.headers.get("Content-Range", "").startswith(f"bytes {before}-"):
                    raise FetchError("it sends another part than was asked for")
                if not continues and answer.status_code != 200:
                    raise FetchError(f"HTTP status {answer.status_code}")
                with part.open("ab" if continues else "wb") as stream:
                    for piece in answer.iter_bytes():
                        stream.write(piece)
                        on_bytes(stream.tell())
                        if stream.tell() > size:
                            raise FetchError(f"it sends more than the {size} bytes it told of")
        except httpx2.TransportError:
            if _bytes(part) <= before:
                raise
        if _bytes(part) <= before and size:
            raise FetchError(f"it ended after {_bytes(part)} of {size} bytes")


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
