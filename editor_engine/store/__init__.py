"""Weights on this machine: catalogue, fetch, verify, import, remove. Stands alone in the engine."""
