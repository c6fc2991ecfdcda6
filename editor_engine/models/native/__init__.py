"""The llama-family forward pass on our own kernels, loaded from GGUF."""
