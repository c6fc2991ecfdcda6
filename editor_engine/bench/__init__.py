"""Measuring what needs only the engine: every figure a ratio or a count, with its conditions beside it."""
