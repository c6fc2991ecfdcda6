"""Prompt templates as text files, and the one loader that reads them."""
