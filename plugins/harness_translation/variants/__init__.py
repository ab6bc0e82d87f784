"""Translators, and the command that writes translated training and test sets."""
