"""Evaluates the checkpoints of a training as they appear, and draws the curve of each language. It adds no hooks."""
