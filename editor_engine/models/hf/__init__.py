"""transformers and bitsandbytes as a target model: any causal checkpoint in a folder. Light until something is loaded.

Everything in `redraft` that knows torch is in this package. Invariant: importing it, and `checkpoint`, imports neither
torch nor transformers; what they need is asked for where a model is loaded.
"""
