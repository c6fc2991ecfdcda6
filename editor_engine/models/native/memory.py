"""What a load needs of this machine's memory, and whether it is there.

Knows nothing of how weights are kept. Invariant: a load that is let through had room when it began; one that is refused
says both numbers. Where the system does not say what is free (not Linux), nothing is refused.
"""

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


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
