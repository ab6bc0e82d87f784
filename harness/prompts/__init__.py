"""Prompts: templates (structure) and literals (words by language), compiled once for a task and a language."""
