"""GGUF blocks to the packed layout, and the on-disk cache of packed weights."""
