"""The site of ``make docs``: navigation from the index, reference pages from the code."""
