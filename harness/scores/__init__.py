"""Scores of tasks, categories and suites: means over languages, differences between languages, and their intervals."""
