"""Measuring what needs the whole edit: prompts as the product builds them, replies as it reads them."""
