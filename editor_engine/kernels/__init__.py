"""Python face of the native kernels."""

from editor_engine.kernels._native import CONTRACT_VERSION, LAYOUT_VERSION, MAX_ROWS

__all__ = ["CONTRACT_VERSION", "LAYOUT_VERSION", "MAX_ROWS"]
