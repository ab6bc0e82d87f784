"""Kinds of task: one file each, with its spec, its records, its references and its methods."""
