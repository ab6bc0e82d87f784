"""HTML and SVG that nothing can break into: an escaping builder, one page shell, charts as pure functions.

Texts of models and data sets are text, never markup. A page is one file without network, scripts of others, or
styles of others; its content-security policy names the hash of each of its own.
"""
