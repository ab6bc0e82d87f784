"""Annotation: sheets for annotators, their labels, and the agreement with the inherited labels."""
