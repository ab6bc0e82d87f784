"""Datasets of the Hugging Face Hub as data sources."""
