"""How the site of ``make docs`` is built: navigation from the index, reference pages from the code."""
