"""Watch mode: on save, propose; the queue of what is to be done, and what a save is."""
