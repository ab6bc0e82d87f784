"""Scores of predictions on generated cases."""
