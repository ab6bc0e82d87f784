"""Metrics as published: pure functions over predictions and references, one family per file."""
