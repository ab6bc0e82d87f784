"""Translators' sheets: a suite's texts in a table, and the way back."""
