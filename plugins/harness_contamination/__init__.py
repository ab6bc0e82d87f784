"""Contamination signs: evidence that a causal model has seen the items of a task. It adds no hooks."""
