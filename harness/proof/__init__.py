"""Proves tasks on their data: what answers of known worth score, and what is wrong with data, prompts and words."""
