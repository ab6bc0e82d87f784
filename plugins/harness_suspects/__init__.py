"""Suspects: the items of a parallel task that many systems get wrong in one language and right in the others."""
