"""Scaffolds: ``harness new`` writes a small working package to start from. It adds no hooks."""
