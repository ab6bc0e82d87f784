"""Runs against each other: tables, verdicts, the layout of papers, power and history."""
