"""Text to tokens and back: tokenizer, chat template, incremental detokeniser. Stands alone in the engine."""
