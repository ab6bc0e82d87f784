"""Suites of templates: their parts in memory, suite folders, and the checks of templates."""
