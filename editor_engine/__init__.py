"""Text in, events out: loads a local model once and completes requests, drafting from the text being edited.

A library on its own: it never imports app, prompts, textual or click. Importing this package loads nothing heavy;
start at `editor_engine.engine.Engine`.
"""
