"""What to draft and how many tokens: pure Python on lists, deterministic, no clock of its own."""
